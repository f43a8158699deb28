// SPDX-License-Identifier: ISC
// node-postgres (pg): named statements of the program, unnamed ones otherwise; a queue, no pipeline.
'use strict'

const { Client } = require('pg')
const { SESSION, N_TEXTS, ROUNDS, BIG, TYPES, say, digest, blob, runJobs } = require('./transcript.js')

const connect = async () => {
	const db = new Client()
	db.on('error', () => {})
	await db.connect()
	return db
}

const attempt = async (db, text, values, name) => {
	try {
		return `fine ${JSON.stringify((await db.query({ text, values, name, rowMode: 'array' })).rows)}`
	} catch (error) {
		return `${error.code} ${error.message}`
	}
}

const transaction = async (db, keep, work) => {
	await db.query('begin')
	await work()
	await db.query(keep ? 'commit' : 'rollback')
}

const jobs = {
	prepared: async db => {
		const sums = Array(N_TEXTS).fill(0)
		for (let i = 0; i < ROUNDS; i++)
			await transaction(db, i % 2, async () => {
				for (let k = 0; k < N_TEXTS; k++) {
					const result = await db.query({ name: `text${k}`, text: `select $1::int + ${1000 * SESSION + k} as n`, values: [i] })
					sums[k] += result.rows[0].n - 1000 * SESSION
				}
			})
		say('prepared', sums)
		for (const type of TYPES)
			say('prepared', await attempt(db, `select ${type}, pg_typeof(${type})::text, $1::text`, ['x'], `type ${type}`))
		say('prepared', await attempt(db, 'select $1::bytea', [Buffer.from([0, 255])]))
	},
	reuse: async db => {
		await db.query("insert into account values ($1, 500, 1, 'reuse')", [SESSION])
		for (let i = 0; i < 5; i++) {
			say('reuse', await attempt(db, 'select note from account where s = $1 and id = $2', [SESSION, 500], 'note'))
			say('reuse', await attempt(db, 'select 1 / $1::int', [0], 'divide'))
		}
		// What could not be parsed must not be remembered under its name.
		say('reuse', await attempt(db, 'selec $1::int', [1], 'broken'))
		say('reuse', await attempt(db, 'select $1::int', [1], 'broken'))
	},
	'changed-table': async db => {
		const table = `changing_${SESSION}`
		await db.query(`create table ${table} as select 1 as a`)
		for (const [i, change] of ["add b text default 'b'", 'alter a type text', 'drop b'].entries()) {
			const select = `select * from ${table} where a::text = $1`
			say('changed-table', await attempt(db, select, ['1'], `changed${i}`))
			await db.query(`alter table ${table} ${change}`)
			say('changed-table', await attempt(db, select, ['1'], `changed${i}`))
			say('changed-table', await attempt(db, select, ['1']))
		}
		await db.query(`drop table ${table}`)
	},
	transaction: async db => {
		await db.query(`insert into account values (${SESSION}, 1, 100, 'one'), (${SESSION}, 2, 50, 'two')`)
		for (let i = 0; i < ROUNDS; i++)
			await transaction(db, i % 2 === 0, async () => {
				// Both are in the driver's queue at once.
				const first = db.query('update account set balance = balance - $2 where s = $1 and id = 1', [SESSION, i])
				await db.query({ name: 'add', text: 'update account set balance = balance + $2 where s = $1 and id = 2', values: [SESSION, i] })
				await first
			})
		say('transaction', await attempt(db, 'select id, balance from account where s = $1 order by id', [SESSION]))
	},
	savepoint: async db => {
		const insert = (id, note) => attempt(db, 'insert into account values ($1, $2, 1, $3)', [SESSION, id, note], 'insert')
		await transaction(db, true, async () => {
			await insert(10, 'kept')
			await db.query('savepoint a')
			await insert(11, 'undone')
			await db.query('rollback to a')
			say('savepoint', await insert(10, 'twice'))
			await db.query('rollback to a')
			await insert(12, 'kept')
		})
		say('savepoint', await attempt(db, 'select id, note from account where s = $1 and id between 10 and 12 order by id', [SESSION]))
	},
	error: async db => {
		for (const text of ['select 1 / $1::int', 'selec $1::int', 'select * from missing where a = $1', "select 'x'::int + $1"]) {
			await transaction(db, false, async () => {
				say('error', await attempt(db, text, [0], text))
				say('error', await attempt(db, 'select $1::int', [1], 'fine'))
			})
			say('error', await attempt(db, 'select $1::int', [1], 'fine'))
		}
		say('error', await attempt(db, 'select 1; select 1 / 0; select 2'))
		say('error', await attempt(db, 'select 1'))
	},
	cancel: async db => {
		for (let i = 0; i < 3; i++) {
			const sleeping = attempt(db, 'select pg_sleep($1)', [60])
			let ended = false
			sleeping.then(() => { ended = true })
			while (!ended) {
				await cancel(db)
				await new Promise(resolve => setTimeout(resolve, 20))
			}
			say('cancel', await sleeping)
			say('cancel', await attempt(db, 'select $1::int', [1]))
		}
	},
	copy: async () => say('copy', 'not in this driver: it is an addition of its own (pg-copy-streams)'),
	cursor: async db => {
		await transaction(db, true, async () => {
			await db.query(`declare walk scroll cursor for ${BIG}`)
			const rows = []
			for (;;) {
				const page = (await db.query({ name: 'fetch', text: 'fetch 700 from walk' })).rows
				if (page.length === 0)
					break
				rows.push(...page)
			}
			say('cursor', digest(rows))
			await db.query('move absolute 500 in walk')
			say('cursor', await attempt(db, 'fetch backward 2 from walk'))
		})
		await transaction(db, true, async () => {
			// A row limit: Execute until the portal is at its end.
			say('cursor', digest((await db.query({ text: BIG, rows: 900 })).rows))
		})
	},
	'large-result': async db => {
		say('large-result', digest((await db.query(BIG)).rows))
		const row = (await db.query("select repeat('0123456789', 300000) as t, $1::bytea as b", [blob(1000000)])).rows[0]
		say('large-result', [row.t.length, row.b.equals(blob(1000000))])
	},
	'large-object': async db => {
		const oid = (await db.query('select lo_from_bytea(0, $1) as oid', [blob(300000)])).rows[0].oid
		await transaction(db, true, async () => {
			const fd = (await db.query('select lo_open($1, 393216) as fd', [oid])).rows[0].fd
			say('large-object', await attempt(db, 'select lo_lseek($1, 1000, 0), lowrite($1, $2)', [fd, Buffer.from('changed')]))
		})
		const data = (await db.query('select lo_get($1) as data', [oid])).rows[0].data
		say('large-object', [data.length, data.subarray(990, 1020).toString('hex')])
		await db.query('select lo_unlink($1)', [oid])
		say('large-object', (await attempt(db, 'select lo_get($1)', [oid])).replace(String(oid), 'OID'))
	},
	batch: async db => {
		// All in the queue at once; the one in the middle fails alone.
		const all = []
		for (let i = 100; i < 400; i++)
			all.push(db.query({ name: 'batch', text: 'insert into account values ($1, $2, $3)', values: [SESSION, i, i] }))
		const failing = attempt(db, 'insert into account values ($1, 100, 0)', [SESSION], 'twice')
		all.push(db.query('insert into account values ($1, 400, 400)', [SESSION]))
		await Promise.all(all)
		say('batch', await failing)
		say('batch', await attempt(db, 'select count(*), sum(balance) from account where s = $1 and id between 100 and 400', [SESSION]))
	},
	reconnect: async () => {
		for (let i = 0; i < 5; i++) {
			const db = await connect()
			say('reconnect', await attempt(db, `select $1::int, ${i}`, [i], 'same'))
			if (i % 2) {
				await db.query('begin')
				await db.query("insert into account values ($1, 9000, 0, 'left in a transaction')", [SESSION])
			}
			await db.end()
		}
	},
	sessions: async db => {
		await Promise.all([1000, 1001].map(async first => {
			const own = await connect()
			for (let i = 0; i < ROUNDS; i++)
				await transaction(own, true, () => own.query({
					name: 'same', text: `insert into account values ($1, ${first} + $2, $3)`, values: [SESSION, 2 * i, i] }))
			await own.end()
		}))
		say('sessions', await attempt(db,
			'select count(*), sum(balance) from account where s = $1 and id between 1000 and 8999', [SESSION]))
	}
}

// The driver's own way: a connection of its own with the key of the other.
const cancel = db => new Promise(resolve => {
	const other = new Client()
	const { connection } = other
	connection.on('connect', () => connection.cancel(db.processID, db.secretKey))
	connection.on('error', resolve)
	connection.on('end', resolve)
	connection.connect(Number(process.env.PGPORT), process.env.PGHOST)
})

runJobs(jobs, connect, db => db.end())
