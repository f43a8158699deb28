/* SPDX-License-Identifier: ISC */
#include "certificate.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static X509 *
make_certificate(EVP_PKEY *key)
{
	X509 *cert = X509_new();
	X509_NAME *name;

	if (cert == NULL)
		return NULL;
	name = X509_get_subject_name(cert);
	if (X509_set_version(cert, 2) == 1 && ASN1_INTEGER_set(X509_get_serialNumber(cert), 1) == 1 &&
	    X509_gmtime_adj(X509_getm_notBefore(cert), -3600) != NULL &&
	    X509_gmtime_adj(X509_getm_notAfter(cert), 7l * 86400) != NULL && X509_set_pubkey(cert, key) == 1 &&
	    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0) == 1 &&
	    X509_set_issuer_name(cert, name) == 1 && X509_sign(cert, key, EVP_sha256()) > 0)
		return cert;
	X509_free(cert);
	return NULL;
}

static FILE *
open_private(const char *path)
{
	FILE *f;

	unlink(path);
	f = fopen(path, "we");
	if (f != NULL && fchmod(fileno(f), 0600) != 0) {
		fclose(f);
		return NULL;
	}
	return f;
}

static bool
write_both(EVP_PKEY *key, X509 *cert, const char *cert_path, const char *key_path)
{
	FILE *c = fopen(cert_path, "we"), *k = open_private(key_path);
	bool ok = c != NULL && k != NULL && PEM_write_X509(c, cert) == 1 &&
	          PEM_write_PrivateKey(k, key, NULL, NULL, 0, NULL, NULL) == 1;

	if (c != NULL && fclose(c) != 0)
		ok = false;
	if (k != NULL && fclose(k) != 0)
		ok = false;
	return ok;
}

bool
certificate_write(const char *cert_path, const char *key_path, struct why *why)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = key != NULL ? make_certificate(key) : NULL;
	bool ok = cert != NULL && write_both(key, cert, cert_path, key_path);

	X509_free(cert);
	EVP_PKEY_free(key);
	return ok ? true : why_set(why, "cannot make a certificate for TLS in %s", cert_path);
}
