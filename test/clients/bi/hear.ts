/**
 * Hears what a client sends and writes it down as a file of the corpus: `node dist/test/clients/bi/hear.js FOLDER TOOL=PROGRAM …`
 * runs `test/clients/bi/programs/PROGRAM` against the Postgres of the measure, with `FOLDER/node_modules` for its packages
 * (none of them is a dependency of the gateway), and writes `corpus/TOOL.sql`. Run by hand when a client changes.
 */
import { execFile } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import pg from 'pg';
import { startOwnPostgres } from '../../support/native-postgres.js';
import { openMeasuredWorld } from './measured-world.js';
import { oidsOf, withoutOids } from './statement.js';
import { type Heard, listenIn } from './tap-proxy.js';

const HOME = join('test', 'clients', 'bi');
const COMMANDS: Readonly<Record<string, string>> = { '.mjs': process.execPath, '.py': '/usr/bin/python3' };

const CATALOG =
  /pg_catalog|information_schema|\bpg_(class|type|namespace|attribute|enum|database|constraint|index|roles|proc|range|extension|settings|tables|views|matviews|get_\w+)\b/i;
const SESSION =
  /^\s*(begin|start|set|show|commit|rollback|savepoint|release|declare|fetch|close|move|discard|reset|deallocate|prepare|execute)\b|^\s*select\s+(pg_catalog\.)?(version|current_\w+|set_config|pg_backend_pid)\b|^\s*select \* from current_\w+/i;

interface Listed {
  readonly kind: 'introspection' | 'data' | 'session';
  readonly statements: string[];
  readonly values: readonly (string | null)[];
}

const own = await startOwnPostgres();
if (own === null) throw new Error('there is no native Postgres on this machine');
const world = await openMeasuredWorld(own);
const { port } = new URL(world.url);
const admin = new pg.Client({ connectionString: world.url });
await admin.connect();
await admin.query(`ALTER ROLE "user:clerk" SET search_path = entities`);
await admin.end();
const oids = await oidsOf(world.postgres);
const listener = await listenIn(Number(port));

/**
 * Each statement once. What opens, closes and marks a transaction is one entry, without the questions in between, and
 * so is what is prepared, executed and deallocated by SQL.
 */
function listed(heard: readonly Heard[]): readonly Listed[] {
  const entries = new Map<string, Listed>();
  const keep = (entry: Listed): unknown => entries.set(JSON.stringify(entry), entry);
  let block: Listed | null = null;
  for (const { sql, values } of heard) {
    const text = withoutOids(sql.trim().replace(/;$/, ''), oids);
    if (text === '') continue;
    const kind = SESSION.test(text) ? 'session' : CATALOG.test(text) ? 'introspection' : 'data';
    if (/^(begin|start|prepare)\b/i.test(text)) block = { kind: 'session', statements: [], values: [] };
    if (block === null || kind !== 'session') keep({ kind, statements: [text], values });
    else block.statements.push(text);
    if (block === null || !/^(commit|rollback|deallocate)\b(?!\s+to)/i.test(text)) continue;
    keep(block);
    block = null;
  }
  return [...entries.values()];
}

function page(tool: string, heard: readonly Heard[]): string {
  const protocol = heard.some((h) => h.values.length > 0) ? 'extended' : 'simple';
  const entries = listed(heard).map(({ kind, statements, values }, i) => {
    const what = (statements.find((s) => !/^(begin|start)/i.test(s)) ?? '').replace(/\s+/g, ' ').slice(0, 70);
    const said = values.length > 0 ? `-- values: ${JSON.stringify(values)}\n` : '';
    return `-- ${kind}: ${i + 1}, ${what}\n${said}${statements.join(';\n')};\n`;
  });
  return `-- tool: ${tool} (captured, ${protocol})\n${entries.join('\n')}`;
}

const [folder = '.', ...wanted] = process.argv.slice(2);
for (const one of wanted) {
  const [tool = '', program = ''] = one.split('=');
  const file = join(folder, program);
  copyFileSync(join(HOME, 'programs', program), file);
  listener.take();
  const env = {
    ...process.env,
    ...{ PGHOST: '127.0.0.1', PGPORT: String(listener.port), PGDATABASE: 'osl', PGSSLMODE: 'disable' },
    ...{ PGUSER: 'user:clerk', PGPASSWORD: 'clerk' },
  };
  const command = COMMANDS[extname(program)] ?? process.execPath;
  const said = await new Promise<string>((done) => {
    execFile(command, [program], { env, cwd: folder, timeout: 120_000 }, (error, out, err) =>
      done(`${error === null ? '' : error.message} ${out} ${err}`.trim()),
    );
  });
  const heard = listener.take();
  console.log(tool, heard.length, said.slice(0, 2_000));
  writeFileSync(join(HOME, 'corpus', `${program.replace(/\.\w+$/, '')}.sql`), page(tool, heard));
}
listener.close();
await world.close();
await own.stop();
