import java.sql.*;
import java.util.*;

/** Where to connect, from the variables that begin with a prefix. */
public record Server(String port, String database, String user, String password, String schema) {
  static Server of(String prefix) {
    var e = System.getenv();
    return new Server(e.get(prefix + "PGPORT"), e.get(prefix + "PGDATABASE"), e.get(prefix + "PGUSER"), e.get(prefix + "PGPASSWORD"), e.get(prefix + "SCHEMA"));
  }
  public String url() { return "jdbc:postgresql://127.0.0.1:" + port + "/" + database; }
  Connection connect(String... settings) throws SQLException {
    var p = new Properties();
    p.setProperty("user", user);
    if (password != null) p.setProperty("password", password);
    if (schema != null) p.setProperty("currentSchema", schema);
    for (int i = 0; i < settings.length; i += 2) p.setProperty(settings[i], settings[i + 1]);
    return DriverManager.getConnection(url(), p);
  }
}
