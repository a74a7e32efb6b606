import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { urlAs } from '../../test/support/native-postgres.js';
import { type Findings, type Measure, median, paired, type Table } from '../report.js';
import { withClient, withPostgres } from '../support/postgres.js';
import { ROLE_PASSWORD, speedDatabase } from './database.js';
import { type SpeedStatement, STATEMENTS } from './statements.js';

const WEB = 'osl_bench_web';
const READER = 'osl_bench_reader';
/** A member of three teams, and the owner of one document in ten thousand. */
const CALLER = `- { name: ann, role: ${WEB}, settings: { app.tenant: "3" }, claims: { sub: c81e728d-9d4c-2f63-6f06-7f89cc14862c } }\n`;

/**
 * Row security as applications write it, imported by `osl rls import`, and the same statements under it and as governed
 * SQL, by `osl rls speed`: tables of one million rows.
 */
export async function rlsSpeedBench(quick: boolean): Promise<Findings> {
  const rows = quick ? 20_000 : 1_000_000;
  return withPostgres([...speedDatabase(rows, WEB)], async (postgres) => {
    const dir = mkdtempSync(join(tmpdir(), 'osl-bench-'));
    try {
      await osl(dir, [
        'rls',
        'import',
        '.',
        '--url',
        postgres.url,
        '--schema',
        'app',
        '--role',
        WEB,
        '--reader',
        READER,
      ]);
      await withClient(postgres.url, async (client) => {
        await client.query(readerScript(dir));
      });
      const found = await speeds(dir, postgres.url);
      return {
        measures: found.map(({ measure }) => measure),
        tables: [{ ...tableOf(rows), rows: found.map(rowOf) }],
      };
    } finally {
      rmSync(dir, { recursive: true, force: true });
      await withClient(postgres.url, async (client) => {
        await client.query(`DROP OWNED BY ${WEB}, ${READER}; DROP ROLE ${WEB}, ${READER}`);
      });
    }
  });
}

const run = promisify(execFile);

/** Runs our command, and returns its standard output. */
async function osl(
  dir: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const options = { cwd: dir, env: { ...process.env, ...env }, maxBuffer: 64 * 2 ** 20 };
  const { stdout } = await run(process.execPath, [resolve('bin/osl.js'), ...args], options);
  return stdout;
}

function readerScript(dir: string): string {
  return readFileSync(join(dir, 'reader.sql'), 'utf8').replace('choose one', ROLE_PASSWORD);
}

/** A side of `osl rls speed --json`. */
interface Side {
  readonly rows: number;
  readonly rounds_ms: readonly number[];
}

interface Compared {
  readonly same_rows: boolean | null;
  readonly reasons: readonly { readonly kind: string }[];
  readonly row_security: Side;
  readonly governed: Side & { readonly attributes_ms: number };
}

interface Speed {
  readonly statement: SpeedStatement;
  readonly compared: Compared;
  readonly measure: Measure;
}

async function speeds(dir: string, url: string): Promise<readonly Speed[]> {
  writeFileSync(join(dir, 'callers.yaml'), CALLER);
  writeFileSync(join(dir, 'statements.sql'), STATEMENTS.map(({ text }) => `${text};\n`).join(''));
  const files = ['--callers', 'callers.yaml', '--statements', 'statements.sql'];
  const env = { DATABASE_URL: urlAs(url, READER, ROLE_PASSWORD) };
  const stdout = await osl(dir, ['rls', 'speed', '.', '--url', url, ...files, '--json'], env);
  const { statements } = JSON.parse(stdout) as { readonly statements: readonly Compared[] }; // our own output
  return STATEMENTS.map((statement, i) => {
    const compared = statements[i];
    if (compared?.same_rows !== true) throw new Error(`${statement.id}: the rows are not the same`);
    const { row_security: theirs, governed: ours } = compared;
    const id = `rls_speed.${statement.id}`;
    const measure = paired(id, 'ms', 'less', ours.rounds_ms, theirs.rounds_ms, 'row security of Postgres');
    return { statement, compared, measure };
  });
}

const TABLE: Omit<Table, 'rows' | 'about'> = {
  name: 'rls-speed: statements',
  head: [
    'policy or statement',
    'statement',
    'rows',
    'row security, ms',
    'governed SQL, ms',
    'of it attributes, ms',
    'ratio',
    'reasons',
  ],
};

function tableOf(rows: number): Omit<Table, 'rows'> {
  return {
    ...TABLE,
    about:
      `Tables of ${rows.toLocaleString('en-US')} rows, imported by \`osl rls import\`; planning and execution by ` +
      '`osl rls speed`, medians of three executions in turns. Governed SQL counts the time to read the attributes of ' +
      'the caller, as seen by the gateway; not counted are the network and, for governed SQL, the work of the gateway ' +
      'itself. The last four are ordinary statements, which win nothing or lose. The fewer rows a prefix of LIKE selects, the ' +
      'more the index is worth: `ab%` is one row in 256.',
  };
}

function rowOf({ statement, compared, measure }: Speed): readonly string[] {
  const { row_security: theirs, governed: ours, reasons } = compared;
  const [under, through] = [median(theirs.rounds_ms), median(ours.rounds_ms)];
  const figure = (value: number): string => String(Number(value.toPrecision(3)));
  return [
    statement.shape,
    `\`${statement.text}\``,
    String(ours.rows),
    figure(under),
    figure(through),
    figure(ours.attributes_ms),
    `${measure.ratio}×`,
    [...new Set(reasons.map(({ kind }) => kind))].join(', '),
  ];
}
