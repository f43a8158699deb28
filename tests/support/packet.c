/* SPDX-License-Identifier: ISC */
#include "packet.h"

#include "proc.h"

#include <stdlib.h>
#include <string.h>

void
packet_free(struct packet *p)
{
	free(p->data);
	*p = (struct packet){0};
}

void
packet_clear(struct packet *p)
{
	p->n = p->open = 0;
}

void
packet_bytes(struct packet *p, const void *data, size_t n)
{
	if (p->n + n > p->cap) {
		p->cap = (p->n + n) * 2 + 256;
		if ((p->data = realloc(p->data, p->cap)) == NULL)
			proc_die("no memory");
	}
	if (n > 0)
		memcpy(p->data + p->n, data, n);
	p->n += n;
}

void
packet_i8(struct packet *p, int v)
{
	uint8_t b = (uint8_t)v;

	packet_bytes(p, &b, 1);
}

void
packet_i16(struct packet *p, int v)
{
	packet_i8(p, v >> 8);
	packet_i8(p, v);
}

void
packet_i32(struct packet *p, int64_t v)
{
	packet_i16(p, (int)(v >> 16));
	packet_i16(p, (int)v);
}

void
packet_str(struct packet *p, const char *s)
{
	packet_bytes(p, s, strlen(s) + 1);
}

void
packet_begin(struct packet *p, char type)
{
	if (type != 0)
		packet_i8(p, type);
	p->open = p->n + 1;
	packet_i32(p, 0);
}

void
packet_end(struct packet *p)
{
	size_t at = p->open - 1, len = p->n - at;

	for (int i = 0; i < 4; i++)
		p->data[at + (size_t)i] = (uint8_t)(len >> (24 - 8 * i));
	p->open = 0;
}

void
packet_startup(struct packet *p, int32_t version, const char *const *pairs)
{
	packet_begin(p, 0);
	packet_i32(p, version);
	for (; *pairs != NULL; pairs++)
		packet_str(p, *pairs);
	packet_i8(p, 0);
	packet_end(p);
}

void
packet_login(struct packet *p, const char *user, const char *database)
{
	packet_startup(p, 3 << 16, (const char *[]){"user", user, "database", database, NULL});
}

void
packet_query(struct packet *p, const char *sql)
{
	packet_begin(p, 'Q');
	packet_str(p, sql);
	packet_end(p);
}

void
packet_parse(struct packet *p, const char *name, const char *sql)
{
	packet_begin(p, 'P');
	packet_str(p, name);
	packet_str(p, sql);
	packet_i16(p, 0);
	packet_end(p);
}

void
packet_bind(struct packet *p, const char *portal, const char *statement)
{
	packet_begin(p, 'B');
	packet_str(p, portal);
	packet_str(p, statement);
	packet_i16(p, 0);
	packet_i16(p, 0);
	packet_i16(p, 0);
	packet_end(p);
}

void
packet_execute(struct packet *p, const char *portal, int max_rows)
{
	packet_begin(p, 'E');
	packet_str(p, portal);
	packet_i32(p, max_rows);
	packet_end(p);
}

void
packet_simple(struct packet *p, char type)
{
	packet_begin(p, type);
	packet_end(p);
}

uint32_t
packet_read_u32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

int
packet_read_i16(const uint8_t *p)
{
	return (int16_t)(p[0] << 8 | p[1]);
}
