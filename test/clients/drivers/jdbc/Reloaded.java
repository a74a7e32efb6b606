import java.sql.*;

/** A prepared statement, before and after the policy shows fewer columns. */
class Reloaded {
  static void run(Server server) throws Exception {
    var c = server.connect();
    var q = c.prepareStatement("select * from customer where id = 1");
    for (int i = 0; i < 8; i++) q.executeQuery().close();
    System.out.println("ready");
    System.in.read();
    var r = q.executeQuery(); r.next();
    System.out.println(r.getMetaData().getColumnCount() + " " + r.getString("name"));
    c.close();
  }
}
