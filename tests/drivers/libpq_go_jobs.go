// SPDX-License-Identifier: ISC

// lib/pq behind database/sql: numbered statements for db.Prepare, the unnamed one for everything else.
package main

import (
	"context"
	"crypto/md5"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/lib/pq"
)

const (
	nTexts = 6
	rounds = 8
	big    = "select i, md5(i::text) from generate_series(1, 3000) i"
)

var session, _ = strconv.Atoi(os.Getenv("DRIVER_SESSION"))

func say(job string, values ...interface{}) {
	fmt.Print(job, ": ", fmt.Sprintln(values...))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// One connection a handle: what database/sql pools is its own affair.
func connect() *sql.DB {
	db, err := sql.Open("postgres", "sslmode=disable")
	must(err)
	db.SetMaxOpenConns(1)
	return db
}

func failure(err error) string {
	var server *pq.Error
	if errors.As(err, &server) {
		return string(server.Code) + " " + server.Message
	}
	return err.Error()
}

type querier interface {
	Query(query string, args ...interface{}) (*sql.Rows, error)
}

type prepared struct{ *sql.Stmt }

func (p prepared) Query(_ string, args ...interface{}) (*sql.Rows, error) {
	return p.Stmt.Query(args...)
}

func fetch(q querier, query string, args ...interface{}) ([]string, error) {
	rows, err := q.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, _ := rows.Columns()
	fields := make([]sql.NullString, len(columns))
	into := make([]interface{}, len(columns))
	for i := range fields {
		into[i] = &fields[i]
	}
	var out []string
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		words := make([]string, len(fields))
		for i, field := range fields {
			words[i] = field.String
		}
		out = append(out, strings.Join(words, "|"))
	}
	return out, rows.Err()
}

func attempt(q querier, query string, args ...interface{}) string {
	rows, err := fetch(q, query, args...)
	if err != nil {
		return failure(err)
	}
	return fmt.Sprint("fine ", rows)
}

func digest(rows []string, err error) string {
	must(err)
	return fmt.Sprintf("%d rows %x", len(rows), md5.Sum([]byte(strings.Join(rows, "\n"))))
}

func blob(size int) []byte {
	bytes := make([]byte, size)
	for i := range bytes {
		bytes[i] = byte(i * 31 % 251)
	}
	return bytes
}

func inTransaction(db *sql.DB, keep bool, work func(tx *sql.Tx)) {
	tx, err := db.Begin()
	must(err)
	work(tx)
	if keep {
		must(tx.Commit())
	} else {
		must(tx.Rollback())
	}
}

func jobPrepared(db *sql.DB) {
	var statements []*sql.Stmt
	for k := 0; k < nTexts; k++ {
		st, err := db.Prepare(fmt.Sprintf("select $1::int + %d", 1000*session+k))
		must(err)
		statements = append(statements, st)
	}
	sums := make([]int, nTexts)
	for i := 0; i < rounds; i++ {
		inTransaction(db, i%2 == 0, func(tx *sql.Tx) {
			for k, st := range statements {
				var n int
				must(tx.Stmt(st).QueryRow(i).Scan(&n))
				sums[k] += n - 1000*session
			}
		})
	}
	say("prepared", sums)
	for _, st := range statements {
		must(st.Close())
	}
	say("prepared", attempt(db, "select $1::bytea, $2::float8, $3::text, $4::int[]", []byte{0, 255}, 1.5, nil, pq.Array([]int{1, 2})))
}

func jobReuse(db *sql.DB) {
	_, err := db.Exec("insert into account values ($1, 500, 1, 'reuse')", session)
	must(err)
	note, err := db.Prepare("select note from account where s = $1 and id = $2")
	must(err)
	divide, err := db.Prepare("select 1 / $1::int")
	must(err)
	for i := 0; i < 5; i++ {
		say("reuse", attempt(prepared{note}, "", session, 500))
		say("reuse", attempt(prepared{divide}, "", 0))
	}
	total := 0
	for i := 0; i < 4*nTexts; i++ {
		st, err := db.Prepare(fmt.Sprintf("select $1::int * %d", 1000+i%7))
		must(err)
		var n int
		must(st.QueryRow(2).Scan(&n))
		total += n
		must(st.Close())
	}
	say("reuse", total)
	must(note.Close())
	must(divide.Close())
}

func jobChangedTable(db *sql.DB) {
	table := fmt.Sprintf("changing_%d", session)
	_, err := db.Exec("create table " + table + " as select 1 as a")
	must(err)
	for _, change := range []string{"add b text default 'b'", "alter a type text", "drop b"} {
		st, err := db.Prepare("select * from " + table + " where a::text = $1")
		must(err)
		say("changed-table", attempt(prepared{st}, "", "1"))
		_, err = db.Exec("alter table " + table + " " + change)
		must(err)
		say("changed-table", attempt(prepared{st}, "", "1"))
		must(st.Close())
		say("changed-table", attempt(db, "select * from "+table+" where a::text = $1", "1"))
	}
	_, err = db.Exec("drop table " + table)
	must(err)
}

func jobTransaction(db *sql.DB) {
	_, err := db.Exec("insert into account values ($1, 1, 100, 'one'), ($1, 2, 50, 'two')", session)
	must(err)
	for i := 0; i < rounds; i++ {
		inTransaction(db, i%2 == 0, func(tx *sql.Tx) {
			_, err := tx.Exec("update account set balance = balance - $1 where s = $2 and id = 1", i, session)
			must(err)
			_, err = tx.Exec("update account set balance = balance + $1 where s = $2 and id = 2", i, session)
			must(err)
		})
	}
	say("transaction", attempt(db, "select id, balance from account where s = $1 order by id", session))
	tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelSerializable, ReadOnly: true})
	must(err)
	say("transaction", attempt(tx, "show transaction_isolation"))
	say("transaction", attempt(tx, "insert into account values ($1, 3, 0)", session))
	must(tx.Rollback())
}

func jobSavepoint(db *sql.DB) {
	const insert = "insert into account values ($1, $2, 1, $3)"
	inTransaction(db, true, func(tx *sql.Tx) {
		say("savepoint", attempt(tx, insert, session, 10, "kept"), attempt(tx, "savepoint a"))
		say("savepoint", attempt(tx, insert, session, 11, "undone"), attempt(tx, "rollback to a"))
		say("savepoint", attempt(tx, insert, session, 10, "twice"), attempt(tx, "rollback to a"))
		say("savepoint", attempt(tx, insert, session, 12, "kept"))
	})
	say("savepoint", attempt(db, "select id, note from account where s = $1 and id between 10 and 12 order by id", session))
}

func jobError(db *sql.DB) {
	for _, query := range []string{"select 1 / $1::int", "selec $1::int", "select * from missing where a = $1", "select 'x'::int + $1"} {
		inTransaction(db, false, func(tx *sql.Tx) {
			say("error", attempt(tx, query, 0))
			say("error", attempt(tx, "select $1::int", 1))
		})
		say("error", attempt(db, "select $1::int", 1))
	}
	say("error", attempt(db, "select 1; select 1 / 0; select 2"))
	tx, err := db.Begin()
	must(err)
	say("error", attempt(tx, "select 1 / 0"))
	say("error", failure(tx.Commit()))
	say("error", attempt(db, "select $1::int", 1))
}

// The driver cancels once when its context ends, so that must not come before the server runs the statement.
func waitForSleep(query string) {
	observer, err := sql.Open("postgres", os.Getenv("OBSERVER")+" sslmode=disable")
	must(err)
	defer observer.Close()
	for n := 0; n == 0; {
		must(observer.QueryRow("select count(*) from pg_sleep(0.01), pg_stat_activity where query = $1 and wait_event = 'PgSleep'",
			query).Scan(&n))
	}
}

func jobCancel(db *sql.DB) {
	for i := 0; i < 3; i++ {
		query := fmt.Sprintf("select pg_sleep($1) -- %d %d", session, i)
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			waitForSleep(query)
			cancel()
		}()
		_, err := db.ExecContext(ctx, query, 60)
		// The driver may say either, as the answer or the end of the context comes first.
		say("cancel", err != nil && (errors.Is(err, context.Canceled) || strings.HasPrefix(failure(err), "57014")))
		say("cancel", attempt(db, "select $1::int", 1))
	}
}

func jobCopy(db *sql.DB) {
	inTransaction(db, true, func(tx *sql.Tx) {
		st, err := tx.Prepare(pq.CopyIn("copied", "s", "id", "note"))
		must(err)
		for i := 0; i < 5000; i++ {
			_, err = st.Exec(session, i, fmt.Sprint("note ", i))
			must(err)
		}
		_, err = st.Exec()
		must(err)
		must(st.Close())
	})
	inTransaction(db, false, func(tx *sql.Tx) {
		st, err := tx.Prepare(pq.CopyIn("copied", "s", "id", "note"))
		must(err)
		_, err = st.Exec(session, "not a number", "x")
		must(err)
		_, err = st.Exec()
		say("copy", failure(err))
		st.Close()
	})
	say("copy", digest(fetch(db, "select id, note from copied where s = $1 order by id", session)))
}

func jobCursor(db *sql.DB) {
	inTransaction(db, true, func(tx *sql.Tx) {
		_, err := tx.Exec("declare walk scroll cursor for " + big)
		must(err)
		var rows []string
		for {
			page, err := fetch(tx, "fetch 700 from walk")
			must(err)
			if len(page) == 0 {
				break
			}
			rows = append(rows, page...)
		}
		say("cursor", digest(rows, nil))
		_, err = tx.Exec("move absolute 500 in walk")
		must(err)
		say("cursor", attempt(tx, "fetch backward 2 from walk"))
	})
	rows, err := db.Query(big) // not read to its end
	must(err)
	rows.Next()
	must(rows.Close())
	say("cursor", attempt(db, "select 1"))
}

func jobLargeResult(db *sql.DB) {
	say("large-result", digest(fetch(db, big)))
	var text string
	var data []byte
	must(db.QueryRow("select repeat('0123456789', 300000), $1::bytea", blob(1000000)).Scan(&text, &data))
	say("large-result", len(text), string(data) == string(blob(1000000)))
}

func jobLargeObject(db *sql.DB) {
	var oid int64
	must(db.QueryRow("select lo_from_bytea(0, $1)", blob(300000)).Scan(&oid))
	inTransaction(db, true, func(tx *sql.Tx) {
		var fd int
		must(tx.QueryRow("select lo_open($1, 393216)", oid).Scan(&fd))
		say("large-object", attempt(tx, "select lo_lseek($1, 1000, 0), lowrite($1, $2)", fd, []byte("changed")))
	})
	var data []byte
	must(db.QueryRow("select lo_get($1)", oid).Scan(&data))
	say("large-object", fmt.Sprintf("%d %x", len(data), data[990:1020]))
	say("large-object", attempt(db, "select lo_unlink($1)", oid))
	say("large-object", strings.Replace(attempt(db, "select lo_get($1)", oid), fmt.Sprint(oid), "OID", 1))
}

func jobReconnect(*sql.DB) {
	for i := 0; i < 5; i++ {
		db := connect()
		st, err := db.Prepare(fmt.Sprintf("select $1::int, %d", i))
		must(err)
		say("reconnect", attempt(prepared{st}, "", i))
		if i%2 == 1 {
			conn, err := db.Conn(context.Background())
			must(err)
			_, err = conn.ExecContext(context.Background(), "begin")
			must(err)
			_, err = conn.ExecContext(context.Background(), "insert into account values ($1, 9000, 0, 'left in a transaction')", session)
			must(err)
			must(conn.Raw(func(raw interface{}) error { return raw.(io.Closer).Close() }))
		}
		db.Close()
	}
}

func jobSessions(db *sql.DB) {
	var all sync.WaitGroup
	for k := 0; k < 2; k++ {
		all.Add(1)
		go func(first int) {
			defer all.Done()
			own := connect()
			defer own.Close()
			st, err := own.Prepare(fmt.Sprintf("insert into account values ($1, %d + $2, $3)", first))
			must(err)
			for i := 0; i < rounds; i++ {
				inTransaction(own, true, func(tx *sql.Tx) {
					_, err := tx.Stmt(st).Exec(session, 2*i, i)
					must(err)
				})
			}
		}(1000 + k)
	}
	all.Wait()
	say("sessions", attempt(db, "select count(*), sum(balance) from account where s = $1 and id between 1000 and 8999", session))
}

func jobBatch(*sql.DB) {
	say("batch", "not in this driver: one statement at a time")
}

// run gives the job the connection; when it panics the next job gets a new one.
func run(name string, db *sql.DB, job func(*sql.DB)) (next *sql.DB) {
	next = db
	defer func() {
		if why := recover(); why != nil {
			say(name, "raised", why)
			next = connect()
		}
	}()
	job(db)
	return
}

func main() {
	db := connect()
	db = run("prepared", db, jobPrepared)
	db = run("reuse", db, jobReuse)
	db = run("changed-table", db, jobChangedTable)
	db = run("transaction", db, jobTransaction)
	db = run("savepoint", db, jobSavepoint)
	db = run("error", db, jobError)
	db = run("cancel", db, jobCancel)
	db = run("copy", db, jobCopy)
	db = run("cursor", db, jobCursor)
	db = run("large-result", db, jobLargeResult)
	db = run("large-object", db, jobLargeObject)
	db = run("batch", db, jobBatch)
	db = run("reconnect", db, jobReconnect)
	db = run("sessions", db, jobSessions)
	db.Close()
}
