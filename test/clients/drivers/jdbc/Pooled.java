import java.sql.*;
import java.util.*;
import com.zaxxer.hikari.*;

/** HikariCP, whose pool sets what a caller changed back: read-only, isolation, auto-commit, schema. */
public class Pooled {
  public static void run(Server server) throws Exception {
    var config = new HikariConfig();
    config.setJdbcUrl(server.url());
    config.setUsername(server.user()); config.setPassword(server.password());
    config.addDataSourceProperty("prepareThreshold", "2");
    config.setMaximumPoolSize(1); config.setReadOnly(true); config.setSchema("entities");
    config.setTransactionIsolation("TRANSACTION_REPEATABLE_READ"); config.setConnectionInitSql("select 1");
    var got = new StringJoiner("\", \"", "[\"", "\"]");
    try (var pool = new HikariDataSource(config)) {
      for (int turn = 0; turn < 4; turn++) {
        try (var c = pool.getConnection()) {
          c.setReadOnly(turn % 2 == 0); c.setAutoCommit(turn == 3);
          if (turn == 1) c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
          var q = c.prepareStatement("select id from customer where id = ?");
          for (int i = 1; i < 5; i++) { q.setInt(1, i); var r = q.executeQuery(); r.next(); if (i == 4) got.add(r.getString(1)); r.close(); }
          if (turn < 3) {
            var point = c.setSavepoint("here");
            try { c.createStatement().executeQuery("select no_such from customer"); } catch (SQLException x) { got.add(x.getSQLState()); }
            c.rollback(point);
          }
          var r = c.createStatement().executeQuery("show transaction_isolation"); r.next(); got.add(r.getString(1));
          if (turn == 2) c.createStatement().executeQuery("select 1/0");
          if (turn < 3) c.commit();
        } catch (SQLException x) { got.add(x.getSQLState()); }
      }
    }
    System.out.println("{\"step\": \"pool\", \"value\": " + got + "}");
  }
}
