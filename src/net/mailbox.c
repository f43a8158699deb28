/* SPDX-License-Identifier: ISC */
#include "net/mailbox.h"

#include "base/obj.h"
#include "net/loop.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct mailbox {
	struct loop_source src;
	struct loop *loop;
	int fd;
	void (*on_mail)(struct mail *m, void *arg);
	void *arg;
	struct {
		pthread_mutex_t lock;
		struct mail *head, **tail;
	} shared;
};

static void
mailbox_ready(struct loop_source *src, uint32_t events)
{
	struct mailbox *mb = container_of(src, struct mailbox, src);
	struct mail *list;
	uint64_t n;

	(void)events;
	/* before the list is taken: a post after that raises the eventfd again */
	if (read(mb->fd, &n, sizeof(n)) < 0)
		return;
	pthread_mutex_lock(&mb->shared.lock);
	list = mb->shared.head;
	mb->shared.head = NULL;
	mb->shared.tail = &mb->shared.head;
	pthread_mutex_unlock(&mb->shared.lock);
	while (list != NULL) {
		struct mail *m = list;

		list = m->next;
		mb->on_mail(m, mb->arg);
	}
}

struct mailbox *
mailbox_new(void (*on_mail)(struct mail *m, void *arg), void *arg)
{
	struct mailbox *mb = calloc(1, sizeof(*mb));

	if (mb == NULL)
		return NULL;
	mb->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (mb->fd < 0) {
		free(mb);
		return NULL;
	}
	mb->src.ready = mailbox_ready;
	mb->src.urgent = true;
	mb->on_mail = on_mail;
	mb->arg = arg;
	pthread_mutex_init(&mb->shared.lock, NULL);
	mb->shared.tail = &mb->shared.head;
	return mb;
}

bool
mailbox_attach(struct mailbox *mb, struct loop *loop)
{
	mb->loop = loop;
	return loop_add(loop, &mb->src, mb->fd, EPOLLIN);
}

void
mailbox_detach(struct mailbox *mb)
{
	if (mb->loop != NULL)
		loop_remove(mb->loop, &mb->src, mb->fd);
	mb->loop = NULL;
}

void
mailbox_free(struct mailbox **mb)
{
	if (*mb == NULL)
		return;
	invariant((*mb)->loop == NULL);
	close((*mb)->fd);
	pthread_mutex_destroy(&(*mb)->shared.lock);
	free(*mb);
	*mb = NULL;
}

void
mailbox_post(struct mailbox *mb, struct mail *m)
{
	uint64_t one = 1;
	bool was_empty;

	m->next = NULL;
	pthread_mutex_lock(&mb->shared.lock);
	was_empty = mb->shared.head == NULL;
	*mb->shared.tail = m;
	mb->shared.tail = &m->next;
	pthread_mutex_unlock(&mb->shared.lock);
	/* an eventfd of 64 bits can't be full; a list that was not empty has its wake-up under way */
	if (was_empty)
		invariant(write(mb->fd, &one, sizeof(one)) == sizeof(one));
}
