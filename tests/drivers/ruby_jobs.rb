# SPDX-License-Identifier: ISC
# ruby-pg: a thin layer over libpq with statements named by the program.

require 'pg'
require 'digest'

$stdout.sync = true
SESSION = Integer(ENV['DRIVER_SESSION'])
N_TEXTS = 6
ROUNDS = 8
BIG = 'select i, md5(i::text) from generate_series(1, 3000) i'.freeze

def say(job, text)
  puts "#{job}: #{text}"
end

def connect
  db = PG.connect
  db.set_notice_processor { |_| nil }
  db
end

def failure(error)
  result = error.result
  return error.message.strip unless result

  "#{result.error_field(PG::PG_DIAG_SQLSTATE)} #{result.error_field(PG::PG_DIAG_MESSAGE_PRIMARY)}"
end

def attempt
  result = yield
  "fine #{result.values}"
rescue PG::Error => e
  failure(e)
end

def digest(rows)
  md5 = Digest::MD5.new
  n = 0
  rows.each do |row|
    md5 << "#{row.join('|')}\n"
    n += 1
  end
  "#{n} rows #{md5.hexdigest}"
end

def blob(size)
  Array.new(size) { |i| i * 31 % 251 }.pack('C*')
end

JOBS = {}

JOBS['prepared'] = lambda do |db|
  N_TEXTS.times { |k| db.prepare("text#{k}", "select $1::int + #{1000 * SESSION + k}") }
  sums = [0] * N_TEXTS
  ROUNDS.times do |i|
    db.transaction do
      N_TEXTS.times { |k| sums[k] += db.exec_prepared("text#{k}", [i]).getvalue(0, 0).to_i - 1000 * SESSION }
    end
  end
  say 'prepared', sums.inspect
  say 'prepared', attempt { db.prepare('text0', 'select 1') }
  say 'prepared', attempt { db.exec_prepared('nothing') }
  about = db.describe_prepared('text0')
  say 'prepared', [about.nparams, about.paramtype(0), about.fname(0), about.ftype(0)].inspect
  binary = db.exec_params('select $1::bytea, $2::int', [{ value: "\0\xff".b, format: 1 }, { value: nil }], 1)
  say 'prepared', binary.values.inspect
end

JOBS['reuse'] = lambda do |db|
  db.exec("insert into account values (#{SESSION}, 500, 1, 'reuse')")
  db.prepare('note', "select note from account where s = #{SESSION} and id = $1")
  db.prepare('divide', 'select 1 / $1::int')
  5.times do
    say 'reuse', (attempt { db.exec_prepared('note', [500]) })
    say 'reuse', (attempt { db.exec_prepared('divide', [0]) })
  end
  # Given up, and the name used for another text.
  db.exec('deallocate note')
  say 'reuse', (attempt { db.exec_prepared('note', [500]) })
  db.prepare('note', 'select $1::int * 2')
  say 'reuse', (attempt { db.exec_prepared('note', [500]) })
  db.exec('begin')
  db.exec('deallocate divide')
  db.exec('rollback') # does not bring it back
  say 'reuse', (attempt { db.exec_prepared('divide', [1]) })
  db.exec('deallocate all')
  say 'reuse', (attempt { db.exec_prepared('note', [500]) })
  db.prepare('', 'select $1::int + 1') # the unnamed one
  say 'reuse', (attempt { db.exec_prepared('', [500]) })
end

JOBS['changed-table'] = lambda do |db|
  table = "changing_#{SESSION}"
  db.exec("create table #{table} as select 1 as a")
  ["add b text default 'b'", 'alter a type text', 'drop b'].each_with_index do |change, i|
    db.prepare("changed#{i}", "select * from #{table} where a::text = $1")
    say 'changed-table', (attempt { db.exec_prepared("changed#{i}", ['1']) })
    db.exec("alter table #{table} #{change}")
    say 'changed-table', (attempt { db.exec_prepared("changed#{i}", ['1']) })
  end
  db.exec("drop table #{table}")
end

JOBS['transaction'] = lambda do |db|
  db.exec("insert into account values (#{SESSION}, 1, 100, 'one'), (#{SESSION}, 2, 50, 'two')")
  ROUNDS.times do |i|
    db.exec('begin')
    db.exec_params('update account set balance = balance - $2 where s = $1 and id = 1', [SESSION, i])
    db.exec_params('update account set balance = balance + $2 where s = $1 and id = 2', [SESSION, i])
    db.exec(i.odd? ? 'rollback' : 'commit')
  end
  say 'transaction', (attempt { db.exec_params('select id, balance from account where s = $1 order by id', [SESSION]) })
end

JOBS['savepoint'] = lambda do |db|
  insert = 'insert into account values ($1, $2, 1, $3)'
  db.transaction do
    db.exec_params(insert, [SESSION, 10, 'kept'])
    db.exec('savepoint a')
    db.exec_params(insert, [SESSION, 11, 'undone'])
    db.exec('rollback to a')
    say 'savepoint', (attempt { db.exec_params(insert, [SESSION, 10, 'twice']) })
    say 'savepoint', db.transaction_status
    db.exec('rollback to a')
    db.exec_params(insert, [SESSION, 12, 'kept'])
  end
  say 'savepoint', (attempt { db.exec("select id, note from account where s = #{SESSION} and id between 10 and 12 order by id") })
end

JOBS['error'] = lambda do |db|
  ['select 1 / $1::int', 'selec $1::int', 'select * from missing where a = $1', "select 'x'::int + $1"].each do |sql|
    db.exec('begin')
    say 'error', (attempt { db.exec_params(sql, [0]) })
    say 'error', (attempt { db.exec_params('select $1::int', [1]) })
    db.exec('rollback')
    say 'error', (attempt { db.exec_params('select $1::int', [1]) })
  end
  say 'error', (attempt { db.exec('select 1; select 1 / 0; select 2') })
  say 'error', (attempt { db.exec('select 1') })
end

JOBS['cancel'] = lambda do |db|
  3.times do
    db.send_query('select pg_sleep(60)')
    db.cancel until db.block(0.02)
    say 'cancel', (attempt { db.get_last_result })
    say 'cancel', (attempt { db.exec('select 1') })
  end
end

JOBS['copy'] = lambda do |db|
  result = db.copy_data('copy copied from stdin') do
    5000.times { |i| db.put_copy_data("#{SESSION}\t#{i}\tnote #{i}\n") }
  end
  say 'copy', result.cmd_status
  rows = []
  db.copy_data("copy (select id, note from copied where s = #{SESSION} order by id) to stdout") do
    while (row = db.get_copy_data)
      rows << row.chomp.split("\t")
    end
  end
  say 'copy', digest(rows)
  say 'copy', (attempt { db.copy_data('copy copied from stdin') { db.put_copy_data("x\n") } })
  begin
    db.copy_data('copy copied from stdin') do
      db.put_copy_data("#{SESSION}\t1\tx\n")
      raise ArgumentError, 'given up'
    end
  rescue ArgumentError => e
    say 'copy', e.message
  end
  say 'copy', (attempt { db.exec("select count(*) from copied where s = #{SESSION}") })
end

JOBS['cursor'] = lambda do |db|
  db.transaction do
    db.exec("declare walk scroll cursor for #{BIG}")
    rows = []
    loop do
      page = db.exec('fetch 1000 from walk').values
      break if page.empty?

      rows.concat(page)
    end
    say 'cursor', digest(rows)
    db.exec('move absolute 500 in walk')
    say 'cursor', (attempt { db.exec('fetch backward 2 from walk') })
  end
  db.send_query(BIG)
  db.set_single_row_mode
  say 'cursor', digest(db.get_result.stream_each_row.to_a)
  db.get_last_result
end

JOBS['large-result'] = lambda do |db|
  say 'large-result', digest(db.exec(BIG).values)
  row = db.exec_params("select repeat('0123456789', 300000), $1::bytea", [{ value: blob(1_000_000), format: 1 }], 1)
  say 'large-result', "#{row.getlength(0, 0)} #{row.getvalue(0, 1) == blob(1_000_000)}"
end

JOBS['large-object'] = lambda do |db| # FunctionCall
  oid = nil
  db.transaction do
    oid = db.lo_creat
    lob = db.lo_open(oid, PG::INV_WRITE)
    db.lo_write(lob, blob(300_000))
    db.lo_close(lob)
  end
  db.transaction do
    lob = db.lo_open(oid, PG::INV_READ | PG::INV_WRITE)
    data = String.new
    while (part = db.lo_read(lob, 50_000))
      data << part
    end
    db.lo_lseek(lob, 1000, PG::SEEK_SET)
    db.lo_write(lob, 'changed')
    db.lo_lseek(lob, 990, PG::SEEK_SET)
    say 'large-object', "#{data == blob(300_000)} #{db.lo_read(lob, 30).unpack1('H*')}"
  end
  db.lo_unlink(oid)
  say 'large-object', (attempt { db.exec("select lo_get(#{oid})") }).sub(oid.to_s, 'OID')
end

JOBS['batch'] = lambda do |db|
  db.enter_pipeline_mode
  db.send_prepare('insert', 'insert into account values ($1, $2, $3)')
  (100...400).each { |i| db.send_query_prepared('insert', [SESSION, i, i]) }
  db.pipeline_sync
  db.send_query_params('select 1 / $1::int', [0])
  db.send_query_params('select $1::int', [1])
  db.pipeline_sync
  db.send_query_params('select count(*), sum(balance) from account where s = $1 and id between 100 and 399', [SESSION])
  db.pipeline_sync
  seen = []
  syncs = 0
  while syncs < 3
    result = db.get_result or next
    status = result.res_status(result.result_status)
    case result.result_status
    when PG::PGRES_PIPELINE_SYNC then syncs += 1
    when PG::PGRES_TUPLES_OK then status += result.values.inspect
    when PG::PGRES_FATAL_ERROR then status += " #{result.error_field(PG::PG_DIAG_SQLSTATE)}"
    end
    seen << status
  end
  db.exit_pipeline_mode
  seen.chunk_while { |a, b| a == b }.each { |same| say 'batch', "#{same.size} #{same.first}" }
end

JOBS['reconnect'] = lambda do |db|
  5.times do |i|
    own = connect
    own.prepare('same', "select $1::int, #{i}")
    say 'reconnect', (attempt { own.exec_prepared('same', [i]) })
    if i.odd?
      own.exec('begin')
      own.exec("insert into account values (#{SESSION}, 9000, 0, 'left in a transaction')")
    end
    own.close
  end
  db.reset
  say 'reconnect', (attempt { db.exec('select 1') })
end

JOBS['sessions'] = lambda do |db|
  two = [connect, connect]
  two.each_with_index { |c, k| c.prepare('same', "insert into account values (#{SESSION}, #{1000 + k} + $1, $2)") }
  ROUNDS.times { |i| two.each { |c| c.transaction { c.exec_prepared('same', [2 * i, i]) } } }
  two.each(&:close)
  say 'sessions', (attempt { db.exec("select count(*), sum(balance) from account where s = #{SESSION} and id between 1000 and 8999") })
end

# What Rails sets on a new connection, and its DISCARD ALL before the connection is used anew.
JOBS['settings'] = lambda do |_|
  zone = %w[UTC Asia/Tokyo America/Lima][SESSION % 3]
  own = connect
  set_up = lambda do
    own.exec("SET client_min_messages TO 'warning'")
    own.exec('SET standard_conforming_strings = on')
    own.exec('SET intervalstyle = iso_8601')
    own.exec("SET SESSION timezone TO '#{zone}'")
    own.exec("SET SESSION statement_timeout TO '#{50 + SESSION % 7}s'")
  end
  ROUNDS.times do |i|
    set_up.call
    own.transaction { own.exec("SET LOCAL statement_timeout = 0; select '1 day'::interval") }
    say 'settings', own.exec("select current_setting('client_min_messages'), interval '1 month 2 days',
      current_setting('timezone') = '#{zone}', current_setting('statement_timeout') = '#{50 + SESSION % 7}s'").values
    own.exec(i.even? ? 'DISCARD ALL' : 'RESET ALL')
    say 'settings', own.exec("select current_setting('client_min_messages'), interval '1 month 2 days',
      current_setting('statement_timeout')").values
  end
  own.close
end

# Its migrations: under a lock of the session.
JOBS['pinned'] = lambda do |_|
  own = PG.connect(dbname: 'pinned')
  ROUNDS.times do
    say 'pinned', own.exec_params('SELECT pg_try_advisory_lock($1)', [SESSION]).values
    own.transaction { own.exec('create table if not exists never_mind (i int); drop table never_mind') } if SESSION % 100 == 0
    own.transaction { say 'pinned', own.exec("select count(*) from pg_locks where locktype = 'advisory' and objid = #{SESSION} and pid = pg_backend_pid()").values }
    say 'pinned', own.exec_params('SELECT pg_advisory_unlock($1)', [SESSION]).values
  end
  own.close
end

db = connect
JOBS.each do |name, job|
  job.call(db)
rescue StandardError => e
  say name, "raised #{e.class}: #{e.message.strip}"
  db.close
  db = connect
end
db.close
