import java.util.*;

/** All programs in one JVM: the output of each stands below a line with its name. */
public class All {
  interface Program { void run(Server server) throws Exception; }
  static void section(String name, Program program, String server) {
    System.out.println("== " + name);
    try { program.run(Server.of(server)); } catch (Exception x) { System.out.println("failed: " + x); x.printStackTrace(); }
  }
  public static void main(String[] args) throws Exception {
    section("client", Client::run, "ANN_");
    if (System.getenv("OSL_HIKARI") != null)
      section("pool", s -> Class.forName("Pooled").getMethod("run", Server.class).invoke(null, s), "ANN_");
    for (var server : List.of("ADA_", "DIRECT_")) section(server + "types", Types::run, server);
    for (var zone : System.getenv("OSL_ZONES").split(" ")) {
      TimeZone.setDefault(TimeZone.getTimeZone(zone));
      for (var server : List.of("ADA_", "DIRECT_")) section(server + zone, Zone::run, server);
    }
    section("reloaded", Reloaded::run, "ADA_");
  }
}
