import java.sql.*;
import java.time.*;
import java.util.*;

/** Moments as a JVM reads and sets them, which tells its own time zone when it connects. */
class Zone {
  static void run(Server server) throws Exception {
    var c = server.connect("prepareThreshold", "2");
    var z = c.createStatement().executeQuery("show timezone"); z.next(); System.out.println(z.getString(1));
    var q = c.prepareStatement("select id, placed_at, placed_at::date, placed_at::text, date_trunc('day', placed_at) " +
      "from \"order\" where placed_at >= ? and placed_at <> ? order by id limit 3");
    for (int i = 0; i < 4; i++) { // in text, then in binary
      q.setTimestamp(1, Timestamp.valueOf("2026-01-01 00:30:00"));
      q.setObject(2, OffsetDateTime.of(2026, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC));
      var r = q.executeQuery();
      while (r.next()) System.out.println(r.getInt(1) + " " + r.getTimestamp(2) + " " + r.getDate(3) + " " + r.getString(4)
        + " " + r.getObject(5, OffsetDateTime.class) + " " + r.getString(2));
    }
    var w = c.prepareStatement("select date_trunc('day', ?::timestamptz), (?::timestamptz)::text, to_char(?::timestamptz, 'HH24:MI TZ')");
    for (int i = 0; i < 4; i++) { // without a table
      for (int p1 = 1; p1 <= 3; p1++) w.setObject(p1, OffsetDateTime.of(2024, 7, 1, 20, 0, 0, 0, ZoneOffset.UTC));
      var r = w.executeQuery();
      while (r.next()) System.out.println(r.getObject(1, OffsetDateTime.class) + " " + r.getTimestamp(1) + " " + r.getString(2) + " " + r.getString(3));
    }
    c.close();
  }
}
