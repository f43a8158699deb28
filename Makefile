# SPDX-License-Identifier: ISC
# One Makefile for the whole tree, not recursive. Sources are found by globbing: add a file and it is built.
#
#   make                      ./pgweir
#   make check                installs what is missing (Debian, Ubuntu), builds, runs every test
#   make BUILD=build-x CC=clang SAN=address,undefined     another build beside the first, binary in build-x/pgweir
#   make V=1                  shows the commands

BUILD = build
SAN =
V = 0
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
CONFIGURE_ARGS ?=

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

# These goals work before configure has run; `check` and `demo` install packages first and then call make again.
UNCONFIGURED = check check-asan check-tsan demo deps fuzz fuzz-run lint fmt tidy clean distclean help
ifneq ($(filter-out $(UNCONFIGURED),$(or $(MAKECMDGOALS),all)),)
include config.mk
endif

# --- flags -----------------------------------------------------------------------------------------------------------
ALL_CPPFLAGS = -D_GNU_SOURCE -Iinclude -Ibuild $(LIB_CFLAGS) $(CPPFLAGS)
ifeq ($(SAN),)
ALL_CFLAGS = -std=gnu11 -pthread $(WARN_CFLAGS) $(CFLAGS) $(HARDEN_CFLAGS) $(LTO_CFLAGS)
ALL_LDFLAGS = -pthread -Wl,--as-needed $(HARDEN_LDFLAGS) $(LDFLAGS)
TEST_LDFLAGS = $(ALL_LDFLAGS) $(if $(LTO_CFLAGS),-fno-lto)
else
SAN_FLAGS = -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
ALL_CFLAGS = -std=gnu11 -pthread $(WARN_CFLAGS) -g -O1 $(SAN_FLAGS)
ALL_LDFLAGS = -pthread -Wl,--as-needed $(SAN_FLAGS)
TEST_LDFLAGS = $(ALL_LDFLAGS)
endif
TEST_CPPFLAGS = $(ALL_CPPFLAGS) -Itests/support -Itests/unit -Ibench/src $(CHECK_CFLAGS)

ifeq ($(V),0)
Q = @
say = @printf '  %-5s %s\n' $(1) $(2)
endif

# --- what there is ---------------------------------------------------------------------------------------------------
LIB_SRC     := $(wildcard src/*/*.c)
MAIN_SRC    := $(wildcard src/main.c)
UNIT_SRC    := $(wildcard tests/unit/test_*.c)
PG_SRC      := $(wildcard tests/pg/test_*.c)
WIRE_SRC    := $(wildcard tests/wire/*.c)
SUPPORT_SRC := $(wildcard tests/support/*.c)
FUZZ_SRC    := $(wildcard tests/fuzz/fuzz_*.c)
REPLAY_SRC  := tests/fuzz/replay_main.c
FAKE_SRC    := $(wildcard tests/fuzz/fake_*.c)
BENCH_SRC   := $(wildcard bench/src/*.c)
WORKLOADS   := $(wildcard bench/workloads/*.sql)
DRIVER_SRC  := $(wildcard tests/drivers/*.c)

obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
bin = $(patsubst %.c,$(BUILD)/%,$(1))

LIB        := $(BUILD)/libpgweir.a
SUPPORT    := $(BUILD)/libsupport.a
PGWEIR     := $(if $(filter build,$(BUILD)),pgweir,$(BUILD)/pgweir)
LIBBENCH   := $(BUILD)/libpgweir-bench.a
PGWEIR_BENCH := $(if $(filter build,$(BUILD)),pgweir-bench,$(BUILD)/pgweir-bench)
UNIT_BIN   := $(call bin,$(UNIT_SRC))
PG_BIN     := $(call bin,$(PG_SRC))
WIRE_BIN   := $(if $(WIRE_SRC),$(BUILD)/tests/wire/player)
REPLAY_BIN := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz/replay_%,$(FUZZ_SRC))
DRIVER_BIN := $(call bin,$(DRIVER_SRC))
TEST_BIN   := $(UNIT_BIN) $(PG_BIN) $(WIRE_BIN) $(REPLAY_BIN)
OBJS       := $(call obj,$(LIB_SRC) $(MAIN_SRC) $(UNIT_SRC) $(PG_SRC) $(WIRE_SRC) $(SUPPORT_SRC) $(FUZZ_SRC) $(REPLAY_SRC) $(FAKE_SRC) $(BENCH_SRC) $(DRIVER_SRC))

.PHONY: all lib tests
all: $(if $(MAIN_SRC),$(PGWEIR),$(LIB)) $(PGWEIR_BENCH)
lib: $(LIB)
tests: all $(TEST_BIN)

# --- configure -------------------------------------------------------------------------------------------------------
configure: configure.ac
	@command -v autoconf >/dev/null || { echo 'autoconf not found (Debian: apt install autoconf, or make deps)' >&2; exit 1; }
	autoconf

config.mk: configure config.mk.in config.h.in
	@if [ -x config.status ]; then ./config.status -q --recheck && ./config.status -q; else ./configure -q $(CONFIGURE_ARGS); fi
	@touch $@

# --- compile and link ------------------------------------------------------------------------------------------------
$(BUILD)/src/%.o: src/%.c config.mk
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/tests/%.o: tests/%.c config.mk
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/bench/%.o: bench/%.c config.mk
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# The archive is made anew when a source file went away too.
$(BUILD)/objects.list: FORCE
	@mkdir -p $(@D)
	@echo '$(LIB_SRC) $(SUPPORT_SRC) $(BENCH_SRC)' | cmp -s - $@ || \
		echo '$(LIB_SRC) $(SUPPORT_SRC) $(BENCH_SRC)' > $@

$(LIB): $(call obj,$(LIB_SRC)) $(BUILD)/objects.list
	$(call say,AR,$@)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(filter %.o,$^)

$(SUPPORT): $(call obj,$(SUPPORT_SRC)) $(BUILD)/objects.list
	$(call say,AR,$@)
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(filter %.o,$^)

$(LIBBENCH): $(call obj,$(filter-out bench/src/main.c,$(BENCH_SRC))) $(BUILD)/objects.list
	$(call say,AR,$@)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(filter %.o,$^)

# The daemon is linked from the objects themselves, so that LTO sees them all.
$(PGWEIR): $(call obj,$(MAIN_SRC) $(LIB_SRC))
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LIB_LIBS)

$(PGWEIR_BENCH): $(BUILD)/bench/src/main.o $(LIBBENCH) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(TEST_LDFLAGS) -o $@ $^ $(LIB_LIBS) -lm

# The benchmark's modules are apart from the daemon's, some under the same names: only its own tests see them.
$(filter $(BUILD)/tests/unit/test_bench_%,$(UNIT_BIN)): $(LIBBENCH)

$(UNIT_BIN): %: %.o $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(TEST_LDFLAGS) -o $@ $(filter %.o,$^) $(filter $(LIBBENCH),$^) $(LIB) $(CHECK_LIBS) $(LIB_LIBS) -lm

$(PG_BIN): %: %.o $(SUPPORT) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(TEST_LDFLAGS) -o $@ $^ $(CHECK_LIBS) $(LIB_LIBS)

$(WIRE_BIN): $(call obj,$(WIRE_SRC)) $(SUPPORT) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(TEST_LDFLAGS) -o $@ $^ $(CHECK_LIBS) $(LIB_LIBS)

$(REPLAY_BIN): $(BUILD)/tests/fuzz/replay_%: $(BUILD)/tests/fuzz/%.o $(call obj,$(REPLAY_SRC) $(FAKE_SRC)) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(TEST_LDFLAGS) -o $@ $^ $(LIB_LIBS)

$(DRIVER_BIN): %: %.o
	$(call say,LD,$@)
	$(Q)$(CC) $(TEST_LDFLAGS) -o $@ $^ $(LIB_LIBS)

-include $(OBJS:.o=.d)

# --- tests -----------------------------------------------------------------------------------------------------------
# tools/run-tests runs programs side by side, adds up their totals and ends with `N passed, N failed`.
# Check's own limit of 4 seconds a test is short for a busy machine, and sanitizers slow everything down.
RUN = PGWEIR='$(abspath $(PGWEIR))' PGWEIR_BENCH='$(abspath $(PGWEIR_BENCH))' \
	PGWEIR_BENCH_WORKLOADS='$(abspath bench/workloads)' BUILD='$(BUILD)' CK_DEFAULT_TIMEOUT=30 $(if $(SAN),CK_TIMEOUT_MULTIPLIER=4 $(SAN_ENV)) \
	tools/run-tests
SAN_ENV = ASAN_OPTIONS=detect_leaks=1:exitcode=99 UBSAN_OPTIONS=print_stacktrace=1:exitcode=99 \
	TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:exitcode=99

.PHONY: check check-run check-unit check-fuzz check-pg check-wire check-asan check-tsan check-san
check: deps
	@$(MAKE) --no-print-directory -j$(JOBS) tests
	@$(MAKE) --no-print-directory check-run

check-run: need-check tests
	@$(RUN) -j 4 $(UNIT_BIN) $(REPLAY_BIN) -j 3 $(WIRE_BIN) $(PG_BIN)
check-unit: need-check $(UNIT_BIN)
	@$(RUN) -j 4 $(UNIT_BIN)
check-fuzz: $(REPLAY_BIN)
	@$(RUN) -j 4 $(REPLAY_BIN)
check-pg: need-check all $(PG_BIN)
	@$(RUN) -j 3 $(PG_BIN)
check-wire: need-check all $(WIRE_BIN)
	@$(RUN) $(WIRE_BIN)

# The same against other servers: PG_BINDIRS names the folders of their initdb and postgres.
PG_BINDIRS =
.PHONY: check-wire-servers
check-wire-servers: need-check all $(WIRE_BIN)
	@[ -n '$(PG_BINDIRS)' ] || { echo "which servers? PG_BINDIRS='/usr/lib/postgresql/14/bin ...'" >&2; exit 1; }
	@for dir in $(PG_BINDIRS); do "$$dir/postgres" --version && PG_BINDIR="$$dir" $(RUN) $(WIRE_BIN) || exit 1; done

# DRIVERS='psycopg3 pgjdbc' runs only those.
DRIVERS =
.PHONY: check-drivers
check-drivers: all $(DRIVER_BIN)
	@PGWEIR='$(abspath $(PGWEIR))' LIBPQ_JOBS='$(abspath $(DRIVER_BIN))' $(if $(SAN),$(SAN_ENV)) tests/drivers/run $(DRIVERS)

# PostgreSQL's own regression tests, from a source tree (tests/regress/README.md). TESTS='temp guc' runs only those.
PGSRC =
TESTS =
.PHONY: check-regress
check-regress: all
	@PGWEIR='$(abspath $(PGWEIR))' PGSRC='$(PGSRC)' $(if $(SAN),$(SAN_ENV)) tests/regress/run $(TESTS)

# Random programs of session state (tests/pg/test_state_random.c), 10,000 steps instead of the 1,000 of `make check`.
STATE_SEEDS = 40
STATE_STEPS = 250
.PHONY: check-state
check-state: need-check all $(BUILD)/tests/pg/test_state_random
	@STATE_SEEDS=$(STATE_SEEDS) STATE_STEPS=$(STATE_STEPS) $(RUN) $(BUILD)/tests/pg/test_state_random

check-asan:
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=build-asan SAN=address,undefined tests
	@$(MAKE) --no-print-directory BUILD=build-asan SAN=address,undefined check-run
check-tsan:
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=build-tsan SAN=thread tests
	@$(MAKE) --no-print-directory BUILD=build-tsan SAN=thread check-tsan-run
check-tsan-run: need-check tests
	@$(RUN) -j 4 $(UNIT_BIN) -j 3 $(PG_BIN)

.PHONY: need-check check-tsan-run
need-check:
	@[ '$(HAVE_CHECK)' = yes ] || { echo 'the tests need Check (Debian: check); then run ./configure again' >&2; exit 1; }

# libFuzzer needs clang.
SECONDS = 60
.PHONY: fuzz fuzz-run fuzz-build
fuzz:
	@$(MAKE) --no-print-directory -j$(JOBS) BUILD=build-fuzz CC=clang SAN=fuzzer-no-link,address,undefined fuzz-build
fuzz-build: $(patsubst tests/fuzz/%.c,$(BUILD)/%,$(FUZZ_SRC))
build-fuzz/fuzz_%: build-fuzz/tests/fuzz/fuzz_%.o $(call obj,$(FAKE_SRC)) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) -pthread -fsanitize=fuzzer,address,undefined -o $@ $^ $(LIB_LIBS)
fuzz-run: fuzz
	@tools/run-fuzz build-fuzz $(SECONDS)

# --- demo, dependencies, style ---------------------------------------------------------------------------------------
.PHONY: demo deps lint fmt tidy
demo: deps
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@PGWEIR='$(abspath $(PGWEIR))' BUILD='$(BUILD)' bench/demo.sh

deps:
	@tools/deps
lint:
	@tools/lint
fmt:
	@tools/fmt
tidy:
	@$(MAKE) --no-print-directory tidy-run
tidy-run: config.mk
	clang-tidy --quiet $(LIB_SRC) $(MAIN_SRC) -- $(ALL_CPPFLAGS) $(ALL_CFLAGS)

# --- install, clean --------------------------------------------------------------------------------------------------
.PHONY: install uninstall dist clean distclean help FORCE tidy-run
MAN := $(wildcard man/*.1 man/*.5)
# pgweir-bench finds it from where it is itself.
workloaddir = $(prefix)/share/pgweir/workloads
CONF := $(wildcard conf/*)

install: all
	$(INSTALL) -d '$(DESTDIR)$(bindir)'
	$(INSTALL) -m 755 $(PGWEIR) '$(DESTDIR)$(bindir)/pgweir'
	$(INSTALL) -m 755 $(PGWEIR_BENCH) '$(DESTDIR)$(bindir)/pgweir-bench'
	$(foreach w,$(WORKLOADS),$(INSTALL) -D -m 644 $(w) '$(DESTDIR)$(workloaddir)/$(notdir $(w))' &&) :
	$(foreach m,$(MAN),$(INSTALL) -D -m 644 $(m) '$(DESTDIR)$(mandir)/man$(subst .,,$(suffix $(m)))/$(notdir $(m))' &&) :
	$(foreach c,$(CONF) $(wildcard README.md LICENSE),$(INSTALL) -D -m 644 $(c) '$(DESTDIR)$(docdir)/$(notdir $(c))' &&) :

uninstall: config.mk
	rm -f '$(DESTDIR)$(bindir)/pgweir' '$(DESTDIR)$(bindir)/pgweir-bench'
	$(foreach w,$(WORKLOADS),rm -f '$(DESTDIR)$(workloaddir)/$(notdir $(w))' &&) :
	$(foreach m,$(MAN),rm -f '$(DESTDIR)$(mandir)/man$(subst .,,$(suffix $(m)))/$(notdir $(m))' &&) :
	$(foreach c,$(CONF) README.md LICENSE,rm -f '$(DESTDIR)$(docdir)/$(notdir $(c))' &&) :
	-rmdir '$(DESTDIR)$(docdir)' '$(DESTDIR)$(workloaddir)' '$(DESTDIR)$(datarootdir)/pgweir' 2>/dev/null

dist: config.mk
	git archive --format=tar.gz --prefix=pgweir-$(PACKAGE_VERSION)/ -o pgweir-$(PACKAGE_VERSION).tar.gz HEAD

# build/config.h belongs to config.mk, so `clean` keeps both.
clean:
	rm -rf build-* pgweir pgweir-bench
	@[ ! -d build ] || find build -mindepth 1 -not -name config.h -delete
distclean:
	rm -rf build build-* pgweir pgweir-bench config.mk config.log config.status configure configure~ autom4te.cache pgweir-*.tar.gz

help:
	@sed -n 's/^#  /  /p' Makefile
FORCE:
