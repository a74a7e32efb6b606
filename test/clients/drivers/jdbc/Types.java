import java.sql.*;
import java.time.*;
import java.util.*;
import org.postgresql.util.PGobject;

/** What pgjdbc declares for each of its setters: in text and, from the fifth run on, prepared and in binary form. */
class Types {
  interface Step { void run() throws Exception; }
  static void step(String name, Step s) {
    try { s.run(); }
    catch (SQLException x) { System.out.println(name + ": " + x.getSQLState() + " " + x.getMessage().split("\n")[0]); }
    catch (Exception x) { System.out.println(name + ": " + x); }
  }
  static PGobject object(String type, String value) throws SQLException { var o = new PGobject(); o.setType(type); o.setValue(value); return o; }
  static Connection c;
  interface Set { void on(PreparedStatement q) throws Exception; }
  static void ask(String name, String sql, Set set) {
    step(name, () -> {
      try (var q = c.prepareStatement(sql)) {
        var said = new ArrayList<String>();
        for (int i = 0; i < 7; i++) { // in text first, then prepared on the server and in binary
          set.on(q);
          var r = q.executeQuery(); var rows = new ArrayList<String>();
          while (r.next()) rows.add(r.getString(1));
          r.close(); said.add(rows.toString());
        }
        System.out.println(name + ": " + said.get(0) + " " + new HashSet<>(said).size());
      }
    });
  }
  static void described(String name, String sql, Set set) {
    step(name, () -> {
      try (var q = c.prepareStatement(sql)) {
        set.on(q); var m = q.getParameterMetaData(); var types = new ArrayList<String>();
        for (int i = 1; i <= m.getParameterCount(); i++) types.add(m.getParameterTypeName(i));
        System.out.println(name + ": " + types);
      }
    });
  }
  static void run(Server server) throws Exception {
    c = server.connect("prepareThreshold", "5", "binaryTransfer", "true");
    String two = "select id from \"order\" where region = ? and placed_at >= ? order by id limit 3";
    Set both = q -> { q.setString(1, "eu"); q.setTimestamp(2, Timestamp.valueOf("2026-01-01 00:30:00")); };
    ask("setString, setTimestamp", two, both);
    described("what is set is described", two, both);
    described("what is not set is described", two, q -> {});
    ask("setObject", "select name from customer where id = ? and region = ?", q -> { q.setObject(1, 1); q.setObject(2, "eu"); });
    int[] turn = {0};
    ask("another type at each turn", "select name from customer where id = ?", q -> {
      switch (turn[0]++ % 3) { case 0 -> q.setInt(1, 1); case 1 -> q.setLong(1, 1); default -> q.setShort(1, (short) 1); }
    });
    ask("setBigDecimal", "select id from \"order\" where amount > ? order by id limit 2", q -> q.setBigDecimal(1, new java.math.BigDecimal("1.25")));
    ask("setDouble", "select id from \"order\" where amount > ? order by id limit 2", q -> q.setDouble(1, 1.25));
    ask("setDate", "select id from customer where born > ? order by id", q -> q.setDate(1, java.sql.Date.valueOf("1980-01-01")));
    ask("LocalDate", "select id from customer where born > ? order by id", q -> q.setObject(1, LocalDate.of(1980, 1, 1)));
    ask("OffsetDateTime", "select id from \"order\" where placed_at > ? order by id limit 2", q -> q.setObject(1, OffsetDateTime.of(2026, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC)));
    ask("setNull varchar", "select id from customer where region = ?", q -> q.setNull(1, java.sql.Types.VARCHAR));
    ask("setNull char", "select id from customer where region = ?", q -> q.setNull(1, java.sql.Types.CHAR));
    ask("CHAR", "select id from customer where region = ? order by id", q -> q.setObject(1, "eu  ", java.sql.Types.CHAR));
    ask("varchar[]", "select id from customer where region = any(?) order by id", q -> q.setArray(1, c.createArrayOf("varchar", new String[] {"eu", null, "x y"})));
    ask("text[]", "select id from customer where region = any(?) order by id", q -> q.setArray(1, c.createArrayOf("text", new String[] {"eu", null, "x y"})));
    ask("bpchar[]", "select id from customer where region = any(?) order by id", q -> q.setArray(1, c.createArrayOf("bpchar", new String[] {"eu "})));
    ask("int4[]", "select name from customer where id = any(?) order by id", q -> q.setArray(1, c.createArrayOf("int4", new Integer[] {1, 2})));
    ask("int8[]", "select id from \"order\" where id = any(?) order by id", q -> q.setArray(1, c.createArrayOf("int8", new Long[] {1L, 2L})));
    ask("int[] as an object", "select name from customer where id = any(?) order by id", q -> q.setObject(1, new int[] {1, 2}));
    ask("uuid", "select ?::text from customer where id = 1", q -> q.setObject(1, UUID.fromString("00112233-4455-6677-8899-aabbccddeeff")));
    ask("json", "select ?::jsonb from customer where id = 1", q -> q.setObject(1, object("json", "{\"a\": 1}")));
    ask("jsonb", "select ? from customer where id = 1", q -> q.setObject(1, object("jsonb", "{\"a\": 1}")));
    ask("inet", "select ?::text from customer where id = 1", q -> q.setObject(1, object("inet", "10.0.0.1")));
    ask("setTime", "select ?::text from customer where id = 1", q -> q.setTime(1, Time.valueOf("10:20:30")));
    ask("LocalTime", "select ?::text from customer where id = 1", q -> q.setObject(1, LocalTime.of(10, 20, 30)));
    ask("OffsetTime", "select ?::text from customer where id = 1", q -> q.setObject(1, OffsetTime.of(10, 20, 30, 0, ZoneOffset.ofHours(2))));
    ask("bytes", "select ?::text from customer where id = 1", q -> q.setBytes(1, new byte[] {1, 2, 3}));
    ask("boolean", "select id from customer where (id > 1) = ? order by id", q -> q.setBoolean(1, true));
    ask("without a table", "select ? || ?", q -> { q.setString(1, "a"); q.setString(2, "b"); });
    ask("in a catalog", "select relname from pg_class where relname = ? and relkind = ?", q -> { q.setString(1, "pg_class"); q.setString(2, "r"); });
    described("in a catalog, described", "select relname from pg_class where relname = ? and oid = ?", q -> { q.setString(1, "pg_class"); q.setLong(2, 1); });
    ask("the connection lives", "select id from customer where id = 1", q -> {});
    ask("inet alone", "select id from customer where ? is null", q -> q.setObject(1, object("inet", "10.0.0.1")));
    ask("the connection lives on", "select id from customer where id = 1", q -> {});
    c.close();
  }
}
