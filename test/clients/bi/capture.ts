/**
 * Asks real clients to look at a catalog, and notes what they send: `node dist/test/clients/bi/capture.js [CLIENT …]` writes
 * `test/clients/bi/captured/CLIENT.json`. Run by hand when a client's version changes; CI replays the files.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { classify } from '../../../src/surfaces/catalog/index.js';
import { openBase, openWorld } from '../../surfaces/catalog/support/world.js';
import { run } from '../drivers/support.js';
import { JDBC, PSQL, PYTHON_CLIENTS } from './clients.js';
import { type CatalogStatement, oidsOf, withoutOids } from './statement.js';
import { type Heard, listenIn } from './tap-proxy.js';

const base = await openBase();
const world = await openWorld(base);
const admin = await world.connect('clerk');
const oids = await oidsOf(admin);
const listener = await listenIn(world.port);
const token = await world.token('clerk');
const home = mkdtempSync(join(tmpdir(), 'osl-capture-'));
const env = {
  ...process.env,
  ...{ PGHOST: '127.0.0.1', PGPORT: String(listener.port), PGUSER: 'user:clerk', PGPASSWORD: token },
  ...{ PGDATABASE: 'osl', PGSSLMODE: 'disable', PGGSSENCMODE: 'disable', HOME: home, PAGER: 'cat' },
  ...{ OSL_PORT: String(listener.port), OSL_USER: 'user:clerk', OSL_TOKEN: token, XDG_CONFIG_HOME: home },
  ...{ TERM: 'dumb', LC_ALL: 'C.UTF-8' },
};

const CLIENTS: Readonly<Record<string, () => Promise<string>>> = {
  psql: async () => {
    const { err } = await run(env, 'psql', ['-X', ...PSQL.flatMap((c) => ['-c', c])]);
    return `${err}\n${(await run(env, '/usr/bin/python3', ['-c', completing()])).err}`;
  },
  pgcli: async () =>
    (
      await run(
        env,
        'pgcli',
        ['--less-chatty', '-h', '127.0.0.1'],
        '\\dt\n\\d person\n\\dn\n\\df\n\\dT\n\\l\n\\du\n\\q\n',
      )
    ).err,
  pgjdbc: async () => {
    const file = join(home, 'Look.java');
    writeFileSync(file, JDBC);
    return (await run(env, 'java', ['-cp', '/usr/share/java/postgresql.jar', file])).err;
  },
  postgres: async () => {
    const sql = postgres({
      host: '127.0.0.1',
      port: listener.port,
      username: 'user:clerk',
      password: token,
      database: 'osl',
      ssl: false,
    });
    await sql`select relname from pg_catalog.pg_class where relname = ${'person'}`;
    await sql`select relname from pg_catalog.pg_class where relname = any(${['person']})`;
    await sql.end();
    return '';
  },
  ...Object.fromEntries(
    Object.entries(PYTHON_CLIENTS).map(([name, text]) => [
      name,
      async () => (await run(env, '/usr/bin/python3', ['-c', text])).err,
    ]),
  ),
};

function completing(): string {
  return `
import os, pty, select, time
for keys in ['select * from per\\t', '\\\\d vi\\t', 'select na\\t', '\\\\df lo\\t', 'select * from person where na\\t', '\\\\dn en\\t', 'set datesty\\t', '\\\\dT te\\t', 'table pg_catalog.pg_clas\\t', 'comment on column person.\\t', '\\\\di ci\\t', '\\\\du us\\t']:
    pid, fd = pty.fork()
    if pid == 0: os.execvp('psql', ['psql', '-X', '-q'])
    def until(text, seconds):
        got, end = '', time.time() + seconds
        while text not in got and time.time() < end:
            if select.select([fd], [], [], 0.05)[0]: got += os.read(fd, 65536).decode()
    until('osl=>', 20); os.write(fd, keys.encode()); until('\\0', 0.6)
    os.write(fd, b'\\x15\\\\q\\n'); time.sleep(0.1); os.close(fd); os.waitpid(pid, 0)
`;
}

/** Statements about the catalog, each once. */
function kept(heard: readonly Heard[]): readonly CatalogStatement[] {
  const found = new Map<string, CatalogStatement>();
  for (const { sql, values } of heard) {
    if (!/^[\s(]*(select|with|show|\/\*|--)/i.test(sql)) continue;
    if (!/^\s*show/i.test(sql) && classify(sql).kind !== 'catalog') continue;
    const said = values.map((v) => (v === null ? null : withoutOids(v, oids)));
    const statement = { sql: withoutOids(sql.trim(), oids), ...(said.length === 0 ? {} : { values: said }) };
    found.set(JSON.stringify(statement), statement);
  }
  return [...found.values()];
}

const wanted = process.argv.slice(2);
for (const [name, look] of Object.entries(CLIENTS)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  listener.take();
  const err = await look();
  const statements = kept(listener.take());
  console.log(name, statements.length, err.trim().slice(0, 2_000));
  writeFileSync(
    join('test', 'clients', 'bi', 'captured', `${name}.json`),
    `${JSON.stringify(statements, null, 2)}\n`,
  );
}
listener.close();
await world.close();
await base.close();
execFileSync('rm', ['-rf', home]);
