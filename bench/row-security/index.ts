import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { ready } from 'osl-compiler';
import type { Client } from 'pg';
import { compileSnapshot, effectiveAccess, type IdentityClaims, sessionRights } from '../../policy/index.js';
import { rowSecurityOf, rowSecurityScript, signedRights } from '../../src/model/row-security/index.js';
import type { NativePostgres } from '../../test/support/native-postgres.js';
import { catalogOf, tables } from '../barrier/data.js';
import { QUESTIONS, type Question } from '../barrier/questions.js';
import { literalOf, microseconds, type Prepared, preparedFor, scansOf } from '../barrier/statements.js';
import { type Findings, type Measure, paired, type Table } from '../report.js';
import { ROLE, SUBJECT, startGateway, TENANT } from '../support/gateway.js';
import { pgbench } from '../support/pgbench.js';
import { accounts, withClient, withPostgres } from '../support/postgres.js';
import { gatewayContestant, MANIFEST, POLICY } from '../wire/contestants.js';
import { pointQuery } from '../wire/point.js';

/**
 * Cost of database row security as a second line of defence: the same statements with and without it behind the
 * gateway's own filters, first on one connection, then as point queries through two gateways.
 */
export async function rowSecurityBench(quick: boolean): Promise<Findings> {
  await ready();
  const statements = quick ? { rows: 20_000, rounds: 3, asks: 20 } : { rows: 200_000, rounds: 5, asks: 20 };
  const load = quick ? { rounds: 2, seconds: 2 } : { rounds: 3, seconds: 5 };
  const first = await statementFindings(statements);
  return { measures: [...first.measures, ...(await gatewayMeasures(load))], tables: first.tables };
}

// ---------------------------------------------------------------- statements

const PLANS: Omit<Table, 'rows'> = {
  name: 'row-security: what is planned',
  about:
    'One row in ten is hidden by `region = attribute(…)`. How Postgres reads the table with the filter of the gateway ' +
    'alone, and with row security of the database behind it.',
  head: ['question', 'predicate', 'first line alone', 'both lines'],
};

const WHOLE: Question = {
  id: 'barrier.whole_table',
  predicate: 'all visible rows, counted',
  text: () => 'select count(*) from account',
};

interface Plan {
  readonly rows: number;
  readonly rounds: number;
  readonly asks: number;
}

/** Runs both variants on one server with the same data; the session's settings are applied once. */
function statementFindings(plan: Plan): Promise<Findings> {
  const [script, analyze] = tables(plan.rows);
  const guarded = (script ?? '').replaceAll('bench', 'guarded');
  return withPostgres([script ?? '', guarded, analyze ?? ''], async (postgres) => {
    const line = secondLine();
    await withClient(postgres.url, (owner) => owner.query(`begin; ${line.script.join(';\n')}; commit`));
    return withClient(postgres.readerUrl, async (client) => {
      await client.query("select set_config('osl.rights', $1, false)", [line.rights]);
      const measures: Measure[] = [];
      const rows: string[][] = [];
      for (const question of [...QUESTIONS, WHOLE]) {
        const [alone, both] = [prepared(question, plan, 'bench'), prepared(question, plan, 'guarded')];
        measures.push(await compared(client, question, alone, both, plan.rounds));
        const scans = [await scansOf(client, alone), await scansOf(client, both)];
        rows.push([idOf(question), question.predicate, ...scans]);
      }
      return { measures, tables: [{ ...PLANS, rows }] };
    });
  });
}

const SNAPSHOT_OF = (schema: string) => {
  const catalog = catalogOf(schema);
  const grants = [...catalog.relations.keys()].map((on) => ({
    on,
    columns: '*' as const,
    rows: "region = attribute('region')",
  }));
  const snapshot = compileSnapshot(
    {
      version: 1,
      tenant: TENANT,
      subjects: { [SUBJECT]: { ceiling: [ROLE], attributes: { region: 'eu' } } },
      roles: { [ROLE]: { grants } },
      masks: {},
    },
    catalog,
  );
  return { catalog, snapshot };
};

const CALLER: IdentityClaims = {
  tenant: TENANT,
  subject: SUBJECT,
  chain: [SUBJECT],
  roles: [],
  aclRoles: [ROLE],
  issuedAt: 0,
  expiresAt: Number.MAX_SAFE_INTEGER,
  tokenId: 'bench',
};

function secondLine() {
  const { catalog, snapshot } = SNAPSHOT_OF('guarded');
  const key = Buffer.alloc(32, 1);
  const design = rowSecurityOf({ name: 'main', tables: new Map() }, 'osl_reader', catalog, snapshot);
  return {
    script: rowSecurityScript(design, key),
    rights: signedRights(sessionRights(CALLER, snapshot, [], null), design.version, key, Date.now()),
  };
}

function prepared(question: Question, plan: Plan, schema: string): Prepared {
  const { catalog, snapshot } = SNAPSHOT_OF(schema);
  const access = effectiveAccess(CALLER, snapshot, catalog);
  const asked = {
    ...question,
    text: (i: number, rows: number) => question.text(i, rows).replaceAll('bench.', `${schema}.`),
  };
  return preparedFor(asked, plan, { name: schema, catalog, access }, (slot) =>
    slot.kind === 'attribute' ? '{eu}' : literalOf(slot),
  );
}

function idOf({ id }: Question): string {
  return id.replace('barrier.', 'row_security.');
}

async function compared(
  client: Client,
  question: Question,
  alone: Prepared,
  both: Prepared,
  rounds: number,
): Promise<Measure> {
  const [ours, theirs]: [number[], number[]] = [[], []];
  await microseconds(client, alone);
  await microseconds(client, both);
  for (let round = 0; round < rounds; round++) {
    theirs.push(await microseconds(client, alone));
    ours.push(await microseconds(client, both));
  }
  return paired(`${idOf(question)}.vs_first_line`, 'µs', 'less', ours, theirs, 'the first line alone');
}

// ---------------------------------------------------------------- through the gateway

const ROWS = 100_000;

/** Point queries of 16 and 64 clients through gateways with and without row security, in alternation. */
async function gatewayMeasures(load: { rounds: number; seconds: number }): Promise<readonly Measure[]> {
  return withPostgres(accounts(ROWS), (plain) =>
    withPostgres(accounts(ROWS), async (guarded) => {
      const dir = mkdtempSync(join(tmpdir(), 'osl-bench-'));
      const manifestFile = join(dir, 'manifest.yaml');
      const manifest = readFileSync(MANIFEST, 'utf8');
      writeFileSync(manifestFile, manifest.replace('    url_env:', '    row_security: true\n    url_env:'));
      const without = await startGateway({ manifestFile: MANIFEST, policyFile: POLICY, postgres: plain });
      const behind = await startGateway({
        manifestFile,
        policyFile: POLICY,
        postgres: guarded,
        prepare: (dataDir) => written(manifestFile, dataDir, guarded),
      });
      try {
        const measures: Measure[] = [];
        for (const clients of [1, 16, 64]) {
          const [ours, theirs]: [number[], number[]] = [[], []];
          for (let round = 0; round < load.rounds; round++) {
            for (const [gateway, into] of [
              [without, theirs],
              [behind, ours],
            ] as const) {
              const target = gatewayContestant(gateway).target(pointQuery(ROWS));
              into.push((await pgbench(target, { mode: 'simple', clients, seconds: load.seconds })).tps);
            }
          }
          const id = `row_security.gateway.point.c${clients}`;
          measures.push(paired(id, 'q/s', 'more', ours, theirs, 'a gateway without it'));
        }
        return measures;
      } finally {
        await behind.stop();
        await without.stop();
        rmSync(dir, { recursive: true, force: true });
      }
    }),
  );
}

const run = promisify(execFile);

async function written(manifestFile: string, dataDir: string, postgres: NativePostgres): Promise<void> {
  const files = ['--manifest', manifestFile, '--policy', resolve(POLICY), '--data-dir', dataDir];
  const env = { ...process.env, BENCH_DATABASE_URL: postgres.readerUrl };
  const flags = ['row-security', '--write', '--url', postgres.url, ...files];
  await run(process.execPath, [resolve('bin/osl.js'), ...flags], { env });
}
