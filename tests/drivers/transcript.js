// SPDX-License-Identifier: ISC
// What the two Node programs share.
'use strict'

const crypto = require('crypto')

exports.SESSION = Number(process.env.DRIVER_SESSION)
exports.N_TEXTS = 6
exports.ROUNDS = 8
exports.BIG = 'select i, md5(i::text) as m from generate_series(1, 3000) i'
exports.TYPES = ['7::int', '1099511627776::int8', '1.5::float8', "'text \u20ac'::text", 'true', 'null::int', "'{1,null,3}'::int[]"]

exports.say = (job, text) => console.log(`${job}: ${typeof text === 'string' ? text : JSON.stringify(text)}`)

exports.digest = rows => {
	const md5 = crypto.createHash('md5')
	for (const row of rows)
		md5.update(Object.values(row).join('|') + '\n')
	return `${rows.length} rows ${md5.digest('hex')}`
}

exports.blob = size => Buffer.from(Array.from({ length: size }, (_, i) => i * 31 % 251))

// Each job gets the same connection; one that throws ends, and the next has a new connection.
exports.runJobs = async (jobs, connect, disconnect) => {
	let db = await connect()
	for (const [name, job] of Object.entries(jobs)) {
		try {
			await job(db)
		} catch (error) {
			exports.say(name, `raised ${error.code || ''} ${error.message}`)
			await disconnect(db).catch(() => {})
			db = await connect()
		}
	}
	await disconnect(db)
	process.exit() // whatever a driver still waits for
}
