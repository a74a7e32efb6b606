import java.sql.*;
import java.util.*;

/** A whole session: metadata, parameters, a stream, cancelling, errors. */
class Client {
  static void say(String step, Object value) { System.out.println("{\"step\": \"" + step + "\", \"value\": " + json(value) + "}"); }
  static String json(Object v) {
    if (v instanceof List<?> l) { var s = new StringJoiner(", ", "[", "]"); for (Object e : l) s.add(json(e)); return s.toString(); }
    return v instanceof Number ? v.toString() : "\"" + v + "\"";
  }
  static List<Object> column(ResultSet r, String name) throws SQLException {
    var found = new ArrayList<Object>(); while (r.next()) found.add(r.getString(name)); r.close(); return found;
  }
  static void run(Server server) throws Exception {
    var c = server.connect("prepareThreshold", "2");
    var m = c.getMetaData();
    say("tables", column(m.getTables(null, "entities", "%", new String[] {"TABLE"}), "TABLE_NAME"));
    say("columns", column(m.getColumns(null, "entities", "customer", "%"), "COLUMN_NAME"));
    say("primary", column(m.getPrimaryKeys(null, "entities", "order"), "COLUMN_NAME"));
    say("foreign", column(m.getImportedKeys(null, "entities", "order"), "PKTABLE_NAME"));
    for (ResultSet r : new ResultSet[] { m.getSchemas(), m.getCatalogs(), m.getTableTypes(), m.getTypeInfo(),
        m.getExportedKeys(null, "entities", "customer"), m.getIndexInfo(null, "entities", "order", false, true),
        m.getBestRowIdentifier(null, "entities", "order", DatabaseMetaData.bestRowSession, false),
        m.getCrossReference(null, "entities", "customer", null, "entities", "order"),
        m.getColumnPrivileges(null, "entities", "customer", "%"), m.getTablePrivileges(null, "entities", "%"),
        m.getProcedures(null, "entities", "%"), m.getFunctions(null, "entities", "%"), m.getUDTs(null, null, "%", null),
        m.getVersionColumns(null, "entities", "order"), m.getClientInfoProperties() }) { while (r.next()); r.close(); }
    say("product", m.getDatabaseProductName());
    var q = c.prepareStatement("select name, email from customer where id = ? and region = ?");
    for (int i = 0; i < 4; i++) {
      q.setInt(1, 1); q.setString(2, "eu");
      var r = q.executeQuery(); r.next();
      say("parameters", List.of(List.of(r.getString(1), r.getString(2)))); r.close();
    }
    c.setAutoCommit(false);
    var s = c.createStatement(); s.setFetchSize(7000);
    var rows = s.executeQuery("select id, amount, placed_at from \"order\" where id > 1000");
    int n = 0; while (rows.next()) { rows.getTimestamp(3); n++; }
    say("stream", n); c.commit(); c.setAutoCommit(true);
    var long_ = c.createStatement();
    new Thread(() -> { try { Thread.sleep(700); long_.cancel(); } catch (Exception x) { x.printStackTrace(); } }).start();
    try { long_.executeQuery(System.getenv("OSL_ENDLESS")); } catch (SQLException x) { say("cancel", x.getSQLState()); }
    try { c.createStatement().executeQuery("select no_such from customer"); } catch (SQLException x) { say("error", x.getSQLState()); }
    try { c.createStatement().executeUpdate("delete from customer"); } catch (SQLException x) { say("write", x.getSQLState()); }
    var one = c.createStatement().executeQuery("select 1"); one.next(); say("after", one.getInt(1));
    say("valid", c.isValid(2) ? 1 : 0);
    c.setReadOnly(true); c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
    c.close();
  }
}
