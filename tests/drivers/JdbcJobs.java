// SPDX-License-Identifier: ISC
// pgjdbc with autocommit off and prepareThreshold=1: named statements S_1, S_2 ... from the first use on, portals C_1 ...
// with a fetch size, batches as one pipeline.

import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.io.StringWriter;
import java.security.MessageDigest;
import java.sql.*;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyIn;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;

public class JdbcJobs {
	static final int SESSION = Integer.parseInt(System.getenv("DRIVER_SESSION"));
	static final int N_TEXTS = 6, ROUNDS = 8;
	static final String BIG = "select i, md5(i::text) from generate_series(1, 3000) i";

	interface Job {
		void run(Connection db) throws Exception;
	}

	static void say(String job, Object text) {
		System.out.println(job + ": " + text);
	}

	static Connection connect(String options) throws SQLException {
		Connection db = DriverManager.getConnection(String.format("jdbc:postgresql://%s:%s/%s?sslmode=disable&user=%s&prepareThreshold=1%s",
			System.getenv("PGHOST"), System.getenv("PGPORT"), System.getenv("PGDATABASE"), System.getenv("PGUSER"), options));
		db.setAutoCommit(false);
		return db;
	}

	static String failure(SQLException e) {
		return e.getSQLState() + " " + e.getMessage().split("\n")[0];
	}

	static PreparedStatement bind(Connection db, String sql, Object... args) throws SQLException {
		PreparedStatement st = db.prepareStatement(sql);
		for (int i = 0; i < args.length; i++)
			st.setObject(i + 1, args[i]);
		return st;
	}

	static String rows(ResultSet rs) throws SQLException {
		List<String> all = new ArrayList<>();
		int n = rs.getMetaData().getColumnCount();
		while (rs.next()) {
			List<String> row = new ArrayList<>();
			for (int i = 1; i <= n; i++)
				row.add(rs.getString(i));
			all.add(row.toString());
		}
		return all.toString();
	}

	static String attempt(Connection db, String sql, Object... args) {
		try (PreparedStatement st = bind(db, sql, args)) {
			return st.execute() ? "fine " + rows(st.getResultSet()) : "fine " + st.getUpdateCount();
		} catch (SQLException e) {
			return failure(e);
		}
	}

	static String digest(ResultSet rs, int limit) throws Exception {
		MessageDigest md5 = MessageDigest.getInstance("MD5");
		int n = 0;
		while (n < limit && rs.next()) {
			md5.update((rs.getString(1) + "|" + rs.getString(2) + "\n").getBytes("UTF-8"));
			n++;
		}
		return n + " rows " + hex(md5.digest());
	}

	static String hex(byte[] bytes) {
		StringBuilder out = new StringBuilder();
		for (byte b : bytes)
			out.append(String.format("%02x", b));
		return out.toString();
	}

	static byte[] blob(int size) {
		byte[] bytes = new byte[size];
		for (int i = 0; i < size; i++)
			bytes[i] = (byte) (i * 31 % 251);
		return bytes;
	}

	static void prepared(Connection db) throws Exception {
		PreparedStatement[] st = new PreparedStatement[N_TEXTS];
		long[] sums = new long[N_TEXTS];
		for (int k = 0; k < N_TEXTS; k++)
			st[k] = db.prepareStatement("select ?::int + " + (1000 * SESSION + k));
		for (int i = 0; i < ROUNDS; i++) {
			for (int k = 0; k < N_TEXTS; k++) {
				st[k].setInt(1, i);
				ResultSet rs = st[k].executeQuery();
				rs.next();
				sums[k] += rs.getInt(1) - 1000 * SESSION;
			}
			db.commit();
		}
		say("prepared", Arrays.toString(sums));
		for (PreparedStatement s : st)
			s.close();
		for (Object value : new Object[] {7, 1L << 40, 1.5, "text \u20ac", true, new java.math.BigDecimal("1.25"), Timestamp.valueOf("2020-01-02 03:04:05")})
			for (int i = 0; i < 3; i++) {
				say("prepared", attempt(db, "select ?", value));
				db.commit();
			}
		try (PreparedStatement meta = db.prepareStatement("select id, balance from account where s = ?")) {
			say("prepared", meta.getMetaData().getColumnTypeName(2) + " " + meta.getParameterMetaData().getParameterTypeName(1));
		}
		db.commit();
	}

	static void reuse(Connection db) throws Exception {
		attempt(db, "insert into account values (?, 500, 1, 'reuse')", SESSION);
		db.commit();
		for (int i = 0; i < 5; i++) {
			say("reuse", attempt(db, "select note from account where s = ? and id = ?", SESSION, 500));
			db.commit();
			say("reuse", attempt(db, "select 1 / ?::int", 0));
			db.rollback();
		}
		// A small cache: the driver closes what it gives up.
		try (Connection small = connect("&preparedStatementCacheQueries=4")) {
			long total = 0;
			for (int i = 0; i < 4 * N_TEXTS; i++) {
				try (PreparedStatement st = bind(small, "select ?::int * " + (1000 + i % 7), 2)) {
					ResultSet rs = st.executeQuery();
					rs.next();
					total += rs.getInt(1);
				}
				if (i % 3 == 0)
					small.commit();
			}
			say("reuse", total);
		}
		// The same text with other types is another statement.
		for (Object value : new Object[] {1, 1L, "1", 1})
			say("reuse", attempt(db, "select coalesce(?, null)", value));
		db.commit();
	}

	static void changedTable(Connection db) throws Exception {
		db.setAutoCommit(true); // then the driver prepares anew by itself
		String table = "changing_" + SESSION;
		attempt(db, "create table " + table + " as select 1 as a");
		for (String change : new String[] {"add b text default 'b'", "alter a type text", "drop b"}) {
			for (int i = 0; i < 2; i++)
				say("changed-table", attempt(db, "select * from " + table + " where a::text = ?", "1"));
			attempt(db, "alter table " + table + " " + change);
		}
		attempt(db, "drop table " + table);
		db.setAutoCommit(false);
	}

	static void transaction(Connection db) throws Exception {
		attempt(db, "insert into account values (?, 1, 100, 'one'), (?, 2, 50, 'two')", SESSION, SESSION);
		db.commit();
		for (int i = 0; i < ROUNDS; i++) {
			attempt(db, "update account set balance = balance - ? where s = ? and id = 1", i, SESSION);
			attempt(db, "update account set balance = balance + ? where s = ? and id = 2", i, SESSION);
			if (i % 2 == 1)
				db.rollback();
			else
				db.commit();
		}
		say("transaction", attempt(db, "select id, balance from account where s = ? order by id", SESSION));
		db.commit();
		db.setReadOnly(true); // BEGIN READ ONLY
		say("transaction", attempt(db, "insert into account values (?, 3, 0)", SESSION));
		db.rollback();
		db.setReadOnly(false);
	}

	static void savepoint(Connection db) throws Exception {
		attempt(db, "insert into account values (?, 10, 1, 'kept')", SESSION);
		Savepoint a = db.setSavepoint();
		attempt(db, "insert into account values (?, 11, 1, 'undone')", SESSION);
		db.rollback(a);
		say("savepoint", attempt(db, "insert into account values (?, 10, 2, 'twice')", SESSION));
		db.rollback(a);
		attempt(db, "insert into account values (?, 12, 1, 'kept')", SESSION);
		db.releaseSavepoint(a);
		db.commit();
		say("savepoint", attempt(db, "select id, note from account where s = ? and id between 10 and 12 order by id", SESSION));
		db.commit();
		try (Connection auto = connect("&autosave=always")) { // a savepoint before every statement
			say("savepoint", attempt(auto, "select 1 / ?::int", 0));
			say("savepoint", attempt(auto, "select ?::int", 1));
			auto.commit();
		}
	}

	static void error(Connection db) throws Exception {
		for (String sql : new String[] {"select 1 / ?::int", "selec ?::int", "select * from missing where a = ?", "select 'x'::int + ?"}) {
			say("error", attempt(db, sql, 0));
			say("error", attempt(db, "select ?::int", 1));
			db.rollback();
			say("error", attempt(db, "select ?::int", 1));
			db.commit();
		}
		db.setAutoCommit(true);
		say("error", attempt(db, "select 5 / ?::int", 0));
		say("error", attempt(db, "select ?::int; select 1 / ?::int; select ?::int", 1, 0, 2));
		say("error", attempt(db, "select ?::int", 1));
		db.setAutoCommit(false);
	}

	static void cancel(Connection db) throws Exception {
		for (int i = 0; i < 3; i++) {
			PreparedStatement st = bind(db, "select pg_sleep(?)", 60);
			CountDownLatch ended = new CountDownLatch(1);
			Thread canceller = new Thread(() -> {
				try {
					while (!ended.await(20, TimeUnit.MILLISECONDS))
						st.cancel();
				} catch (Exception e) {
					say("cancel", e);
				}
			});
			canceller.start();
			try {
				st.execute();
				say("cancel", "slept");
			} catch (SQLException e) {
				say("cancel", failure(e));
			}
			ended.countDown();
			canceller.join();
			st.close();
			db.rollback();
			say("cancel", attempt(db, "select ?::int", 1));
			db.commit();
		}
	}

	static void copy(Connection db) throws Exception {
		org.postgresql.copy.CopyManager copy = db.unwrap(PGConnection.class).getCopyAPI();
		StringBuilder source = new StringBuilder();
		for (int i = 0; i < 5000; i++)
			source.append(SESSION + "\t" + i + "\tnote " + i + "\n");
		say("copy", copy.copyIn("copy copied from stdin", new StringReader(source.toString())));
		StringWriter out = new StringWriter();
		say("copy", copy.copyOut("copy (select id, note from copied where s = " + SESSION + " order by id) to stdout", out));
		say("copy", hex(MessageDigest.getInstance("MD5").digest(out.toString().getBytes("UTF-8"))));
		db.commit();
		try {
			copy.copyIn("copy copied from stdin", new StringReader(source + "not a number\n"));
		} catch (SQLException e) {
			say("copy", failure(e));
		}
		db.rollback();
		CopyIn given = copy.copyIn("copy copied from stdin");
		byte[] line = (SESSION + "\t1\tx\n").getBytes();
		given.writeToCopy(line, 0, line.length);
		given.cancelCopy();
		db.rollback();
		say("copy", attempt(db, "select count(*) from copied where s = ?", SESSION));
		db.commit();
	}

	static void cursor(Connection db) throws Exception {
		for (int size : new int[] {7, 1000}) {
			try (PreparedStatement st = bind(db, BIG)) {
				st.setFetchSize(size);
				say("cursor", digest(st.executeQuery(), size == 7 ? 70 : Integer.MAX_VALUE));
			}
			db.commit();
		}
		// Two portals at once, other statements between their pages.
		try (PreparedStatement one = bind(db, "select i, 'one' from generate_series(1, ?::int) i", 300);
			PreparedStatement two = bind(db, "select -i, 'two' from generate_series(1, ?::int) i", 300)) {
			one.setFetchSize(50);
			two.setFetchSize(70);
			ResultSet a = one.executeQuery(), b = two.executeQuery();
			long sum = 0;
			while (a.next() && b.next())
				sum += a.getInt(1) * 3L + b.getInt(1) + (a.getRow() % 60 == 0 ? attempt(db, "select ?::int", 1).length() : 0);
			say("cursor", sum);
		}
		db.commit();
		try (PreparedStatement st = bind(db, BIG)) {
			st.setMaxRows(10);
			say("cursor", digest(st.executeQuery(), Integer.MAX_VALUE));
		}
		db.commit();
	}

	static void largeResult(Connection db) throws Exception {
		try (PreparedStatement st = bind(db, BIG)) {
			say("large-result", digest(st.executeQuery(), Integer.MAX_VALUE));
		}
		try (PreparedStatement st = bind(db, "select repeat('0123456789', 300000), ?::bytea", blob(1000000))) {
			ResultSet rs = st.executeQuery();
			rs.next();
			say("large-result", rs.getString(1).length() + " " + Arrays.equals(rs.getBytes(2), blob(1000000)));
		}
		db.commit();
	}

	static void largeObject(Connection db) throws Exception { // FunctionCall
		LargeObjectManager lobs = db.unwrap(PGConnection.class).getLargeObjectAPI();
		long oid = lobs.createLO();
		try (LargeObject lob = lobs.open(oid)) {
			lob.write(blob(300000));
		}
		db.commit();
		try (LargeObject lob = lobs.open(oid)) {
			ByteArrayOutputStream all = new ByteArrayOutputStream();
			lob.getInputStream().transferTo(all);
			lob.seek(1000);
			lob.write("changed".getBytes());
			lob.seek(990);
			say("large-object", Arrays.equals(all.toByteArray(), blob(300000)) + " " + hex(lob.read(30)));
			lob.truncate(5000);
			say("large-object", lob.size());
		}
		db.commit();
		lobs.delete(oid);
		db.commit();
		try {
			lobs.open(oid);
		} catch (SQLException e) {
			say("large-object", failure(e).replace("" + oid, "OID"));
		}
		db.rollback();
	}

	static void batch(Connection db) throws Exception {
		try (PreparedStatement st = db.prepareStatement("insert into account values (?, ?, ?)")) {
			for (int i = 100; i < 600; i++) {
				st.setInt(1, SESSION);
				st.setInt(2, i == 500 ? 9500 : i);
				st.setInt(3, i);
				st.addBatch();
			}
			say("batch", Arrays.stream(st.executeBatch()).sum());
			db.commit();
			for (int id : new int[] {700, 701, 100, 702}) {
				st.setInt(1, SESSION);
				st.setInt(2, id);
				st.setInt(3, 0);
				st.addBatch();
			}
			try {
				st.executeBatch();
			} catch (BatchUpdateException e) {
				say("batch", e.getSQLState() + " " + Arrays.toString(e.getUpdateCounts()));
			}
			db.rollback();
		}
		try (Statement st = db.createStatement()) {
			for (int i = 0; i < 20; i++)
				st.addBatch("update account set balance = balance + " + i + " where s = " + SESSION + " and id = " + (100 + i));
			say("batch", Arrays.toString(st.executeBatch()));
			db.commit();
		}
		try (PreparedStatement st = db.prepareStatement("insert into account values (?, ?, 1)", Statement.RETURN_GENERATED_KEYS)) {
			for (int i = 800; i < 850; i++) {
				st.setInt(1, SESSION);
				st.setInt(2, i);
				st.addBatch();
			}
			st.executeBatch();
			ResultSet keys = st.getGeneratedKeys();
			long sum = 0;
			while (keys.next())
				sum += keys.getInt("id");
			say("batch", sum);
			db.commit();
		}
		say("batch", attempt(db, "select count(*), sum(balance) from account where s = ? and id between 100 and 850", SESSION));
		db.commit();
	}

	static void reconnect(Connection unused) throws Exception {
		for (int i = 0; i < 5; i++)
			try (Connection db = connect("")) {
				say("reconnect", attempt(db, "select ?::int, " + i, i));
				db.commit();
				if (i % 2 == 1)
					attempt(db, "insert into account values (?, 9000, 0, 'left in a transaction')", SESSION);
			}
	}

	static void sessions(Connection db) throws Exception {
		Thread[] threads = new Thread[2];
		for (int k = 0; k < 2; k++) {
			int first = 1000 + k;
			threads[k] = new Thread(() -> {
				try (Connection own = connect("")) {
					for (int i = 0; i < ROUNDS; i++) {
						attempt(own, "insert into account values (?, " + first + " + ?, ?)", SESSION, 2 * i, i);
						own.commit();
					}
				} catch (SQLException e) {
					say("sessions", failure(e));
				}
			});
			threads[k].start();
		}
		for (Thread t : threads)
			t.join();
		say("sessions", attempt(db, "select count(*), sum(balance) from account where s = ? and id between 1000 and 8999", SESSION));
		db.commit();
	}

	// The driver's own startup parameters and calls that are a SET of the session.
	static void settings(Connection unused) throws Exception {
		String tenant = "tenant_" + SESSION % 4;
		try (Connection db = connect("&ApplicationName=habits&options=-c%20statement_timeout=55s")) {
			db.setAutoCommit(true);
			db.setSchema(tenant);
			db.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
			for (int i = 0; i < ROUNDS; i++) {
				db.setReadOnly(i % 2 == 0);
				db.setAutoCommit(i % 3 == 0);
				say("settings", attempt(db, "select current_setting('extra_float_digits'), current_setting('application_name'),"
					+ " current_setting('search_path') like ?, current_setting('transaction_isolation'),"
					+ " current_setting('transaction_read_only'), current_setting('statement_timeout')", "%" + tenant + "%"));
				if (!db.getAutoCommit())
					db.commit();
			}
			say("settings", db.getSchema() == null);
			say("settings", db.getTransactionIsolation());
		}
	}

	static Connection run(String name, Connection db, Job job) throws Exception {
		try {
			job.run(db);
			return db;
		} catch (Exception e) {
			say(name, "raised " + e);
			db.close();
			return connect("");
		}
	}

	public static void main(String[] args) throws Exception {
		Connection db = connect("");
		db = run("prepared", db, JdbcJobs::prepared);
		db = run("reuse", db, JdbcJobs::reuse);
		db = run("changed-table", db, JdbcJobs::changedTable);
		db = run("transaction", db, JdbcJobs::transaction);
		db = run("savepoint", db, JdbcJobs::savepoint);
		db = run("error", db, JdbcJobs::error);
		db = run("cancel", db, JdbcJobs::cancel);
		db = run("copy", db, JdbcJobs::copy);
		db = run("cursor", db, JdbcJobs::cursor);
		db = run("large-result", db, JdbcJobs::largeResult);
		db = run("large-object", db, JdbcJobs::largeObject);
		db = run("batch", db, JdbcJobs::batch);
		db = run("reconnect", db, JdbcJobs::reconnect);
		db = run("sessions", db, JdbcJobs::sessions);
		db = run("settings", db, JdbcJobs::settings);
		db.close();
	}
}
