// SPDX-License-Identifier: ISC
// postgres.js: names statements by itself, keeps them, sends queries in a pipeline without waiting.
'use strict'

const postgres = require('postgres')
const { SESSION, N_TEXTS, ROUNDS, BIG, TYPES, say, digest, blob, runJobs } = require('./transcript.js')
const { Readable } = require('stream')
const { pipeline } = require('stream/promises')

// One connection a handle, which is not to be renewed and asks for no types.
const connect = async options => postgres({ max: 1, fetch_types: false, max_lifetime: null, onnotice: () => {},
	database: process.env.PGDATABASE, username: process.env.PGUSER, ...options })

const disconnect = sql => sql.end({ timeout: 5 })

const attempt = async query => {
	try {
		return `fine ${JSON.stringify((await query).map(row => Object.values(row)))}`
	} catch (error) {
		return `${error.code} ${error.message}`
	}
}

// A text with parameters in the places of $1, $2 ...
const run = (sql, text, args = []) => sql.unsafe(text, args, { prepare: true })

const UNDO = new Error('undo')
const transaction = (sql, keep, work) => sql.begin(async tx => {
	await work(tx)
	if (!keep)
		throw UNDO
}).catch(error => {
	if (error !== UNDO)
		throw error
})

const jobs = {
	prepared: async sql => {
		const sums = Array(N_TEXTS).fill(0)
		for (let i = 0; i < ROUNDS; i++)
			await transaction(sql, i % 2, async tx => {
				const rows = await Promise.all(sums.map((_, k) => run(tx, `select $1::int + ${1000 * SESSION + k} as n`, [i])))
				rows.forEach((row, k) => { sums[k] += row[0].n - 1000 * SESSION })
			})
		say('prepared', sums)
		for (const type of TYPES)
			for (let i = 0; i < 2; i++)
				say('prepared', await attempt(run(sql, `select ${type} as a, pg_typeof(${type})::text as b, $1::text as c`, ['x'])))
		say('prepared', await attempt(sql`select ${Buffer.from([0, 255])}::bytea as b`))
	},
	reuse: async sql => {
		await sql`insert into account values (${SESSION}, 500, 1, 'reuse')`
		for (let i = 0; i < 5; i++) {
			say('reuse', await attempt(sql`select note from account where s = ${SESSION} and id = ${500}`))
			say('reuse', await attempt(sql`select 1 / ${0}::int as n`))
		}
		const unnamed = await connect({ prepare: false })
		for (let i = 0; i < 5; i++)
			say('reuse', await attempt(unnamed`select ${i}::int as n`))
		await disconnect(unnamed)
	},
	'changed-table': async sql => {
		const table = `changing_${SESSION}`
		await sql.unsafe(`create table ${table} as select 1 as a`)
		for (const change of ["add b text default 'b'", 'alter a type text', 'drop b']) {
			const select = () => attempt(run(sql, `select * from ${table} where a::text = $1`, ['1']))
			say('changed-table', await select())
			say('changed-table', await select())
			await sql.unsafe(`alter table ${table} ${change}`)
			say('changed-table', await select()) // the driver prepares anew by itself
		}
		await sql.unsafe(`drop table ${table}`)
	},
	transaction: async sql => {
		await sql`insert into account values (${SESSION}, 1, 100, 'one'), (${SESSION}, 2, 50, 'two')`
		for (let i = 0; i < ROUNDS; i++)
			await transaction(sql, i % 2 === 0, async tx => {
				await tx`update account set balance = balance - ${i} where s = ${SESSION} and id = 1`
				await tx`update account set balance = balance + ${i} where s = ${SESSION} and id = 2`
			})
		say('transaction', await attempt(sql`select id, balance from account where s = ${SESSION} order by id`))
		await sql.begin('isolation level serializable read only', async tx => {
			say('transaction', await attempt(tx`show transaction_isolation`))
		})
	},
	savepoint: async sql => {
		await sql.begin(async tx => {
			await tx`insert into account values (${SESSION}, 10, 1, 'kept')`
			for (const [id, note] of [[10, 'twice'], [12, 'kept'], [11, 'undone']])
				await tx.savepoint(async inner => {
					await inner`insert into account values (${SESSION}, ${id}, 1, ${note})`
					if (note === 'undone')
						throw UNDO
				}).catch(error => say('savepoint', error.message))
		})
		say('savepoint', await attempt(sql`select id, note from account where s = ${SESSION} and id between 10 and 12 order by id`))
	},
	error: async sql => {
		for (const text of ['select 1 / $1::int as n', 'selec $1::int', 'select * from missing where a = $1', "select 'x'::int + $1 as n"]) {
			await transaction(sql, false, async tx => {
				say('error', await attempt(run(tx, text, [0])))
				say('error', await attempt(run(tx, 'select $1::int as n', [1])))
			}).catch(error => say('error', error.message))
			say('error', await attempt(run(sql, 'select $1::int as n', [1])))
		}
		say('error', await attempt(sql.unsafe('select 1 as n; select 1 / 0 as n; select 2 as n')))
		say('error', await attempt(sql`select ${1}::int as n`))
	},
	cancel: async sql => {
		for (let i = 0; i < 3; i++) {
			const query = sql`select pg_sleep(${60})`
			const sleeping = attempt(query)
			let ended = false
			sleeping.then(() => { ended = true })
			while (!ended) {
				await new Promise(resolve => setTimeout(resolve, 20))
				if (!ended)
					query.cancel()
			}
			say('cancel', await sleeping)
			say('cancel', await attempt(sql`select ${1}::int as n`))
		}
	},
	copy: async sql => {
		const lines = Array.from({ length: 5000 }, (_, i) => `${SESSION}\t${i}\tnote ${i}\n`)
		await sql.begin(async tx => pipeline(Readable.from(lines), await tx`copy copied from stdin`.writable()))
		let out = ''
		// A session of its own: the driver may leave its socket paused behind a COPY that was read.
		const own = await connect()
		for await (const part of await own.unsafe(`copy (select id, note from copied where s = ${SESSION} order by id) to stdout`).readable())
			out += part
		await own.end({ timeout: 0 })
		say('copy', digest(out.trimEnd().split('\n').map(line => line.split('\t'))))
		say('copy', await attempt(sql`select count(*) from copied where s = ${SESSION}`))
	},
	cursor: async sql => {
		for (const size of [7, 1000]) {
			const rows = []
			await sql.begin(async tx => { // a portal with a row limit
				await tx.unsafe(BIG).cursor(size, page => {
					rows.push(...page)
					return size === 7 && rows.length >= 70 ? sql.CLOSE : undefined
				})
			})
			say('cursor', digest(rows))
		}
	},
	'large-result': async sql => {
		say('large-result', digest(await sql.unsafe(BIG)))
		const [row] = await sql`select repeat('0123456789', 300000) as t, ${blob(1000000)}::bytea as b`
		say('large-result', [row.t.length, row.b.equals(blob(1000000))])
	},
	'large-object': async sql => {
		const oid = (await sql`select lo_create(0)::int as oid`)[0].oid
		// Each is a transaction that ends with close().
		let lob = await sql.largeObject(oid)
		await lob.write(blob(300000))
		await lob.close()
		lob = await sql.largeObject(oid)
		const data = (await lob.read(300001))[0].data
		await lob.seek(1000)
		await lob.write(Buffer.from('changed'))
		await lob.seek(990)
		say('large-object', [data.equals(blob(300000)), (await lob.read(30))[0].data.toString('hex')])
		await lob.close()
		say('large-object', await attempt(sql`select lo_unlink(${oid}) as n`))
		say('large-object', (await attempt(sql`select lo_get(${oid})`)).replace(String(oid), 'OID'))
	},
	batch: async sql => {
		// All of them on the wire at once; the one in the middle fails alone.
		const all = []
		for (let i = 100; i < 400; i++)
			all.push(sql`insert into account values (${SESSION}, ${i}, ${i})`.execute())
		all.push(attempt(sql`insert into account values (${SESSION}, ${100}, 0)`))
		all.push(sql`insert into account values (${SESSION}, ${400}, 400)`.execute())
		say('batch', (await Promise.all(all))[300])
		const rows = Array.from({ length: 200 }, (_, i) => ({ s: SESSION, id: 700 + i, balance: i }))
		await sql`insert into account ${sql(rows)}`
		say('batch', await attempt(sql`select count(*), sum(balance) from account where s = ${SESSION} and id between 100 and 900`))
	},
	reconnect: async () => {
		for (let i = 0; i < 5; i++) {
			const sql = await connect()
			say('reconnect', await attempt(run(sql, `select $1::int as n, ${i} as i`, [i])))
			await disconnect(sql)
		}
	},
	sessions: async sql => {
		await Promise.all([1000, 1001].map(async first => {
			const own = await connect()
			for (let i = 0; i < ROUNDS; i++)
				await own.begin(tx => run(tx, `insert into account values ($1, ${first} + $2, $3)`, [SESSION, 2 * i, i]))
			await disconnect(own)
		}))
		say('sessions', await attempt(
			sql`select count(*), sum(balance) from account where s = ${SESSION} and id between 1000 and 8999`))
	}
}

runJobs(jobs, connect, disconnect)
