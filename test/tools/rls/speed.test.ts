import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ready } from 'osl-compiler';
import t from 'tap';
import { speedDatabase } from '../../../bench/rls-speed/database.js';
import { catalogOf, checkedDatabase } from '../../../cli/rls/database.js';
import { explained, operatorsIn, reasonsFor, testsOf } from '../../../cli/rls/speed/reasons.js';
import { leakproofnessOf } from '../../../cli/rls/speed/run.js';
import { explainedPlan } from '../../../cli/rls/speed/session.js';
import { selectIn } from '../../../cli/rls/speed/statements.js';
import { surveyPostgres } from '../../../src/engine/index.js';
import { NO_NATIVE, startNativePostgres, urlAs } from '../../support/native-postgres.js';
import { type Finished, osl, temporary } from '../cli/support.js';
import { rowSecurityDatabase } from './row-security-database.js';

/*
 * Three shapes of row security in a database of 30,000 rows a table, imported by `osl rls import`: the reasons that
 * `osl rls speed` reads from the plans.
 */

const ROWS = 30_000;
const ANN = 'c81e728d-9d4c-2f63-6f06-7f89cc14862c';

const STATEMENTS = `
select id, title from app.document order by title limit 20 -- the last of its line
;
select count(*) from app.message where body > 'f';
select team_id, count(*) from note group by team_id order by 1;
select id, name from app.product where name like 'ab%';
select id, name from app.product where name like $1 limit $2;
select id, title from app.task where tenant_id = $1 and due > $2 order by due limit 3;
select id from app.task where id = $3;
select xmin from app.product;
select count(*) from app.task where $1;
select * from app.product for update;
select * from app.admin;
select 1/0 from app.task;
select id from app.product where name in ('geheim1', E'geheim\\'2', $a$geheim3$a$) /* geheim4 */ and "name" <> ''; -- geheim5`;

interface Printed {
  readonly statement: string;
  readonly compared: boolean;
  readonly reason?: string;
  readonly faster?: string;
  readonly ratio?: number;
  readonly same_rows?: boolean;
  readonly reasons?: readonly {
    readonly kind: string;
    readonly table: string | null;
    readonly text: string;
  }[];
  readonly row_security?: {
    readonly rows: number;
    readonly rounds_ms: readonly number[];
    readonly plan: unknown;
  };
  readonly governed?: { readonly rows: number; readonly sql: string; readonly plan: unknown };
}

function printed({ stdout }: Finished): readonly Printed[] {
  return (JSON.parse(stdout) as { readonly statements: readonly Printed[] }).statements;
}

t.setTimeout(240_000);
const postgres = await startNativePostgres();
if (postgres === null) t.test('osl rls speed', { skip: NO_NATIVE }, async () => undefined);
else {
  const { mark, admin } = await rowSecurityDatabase(postgres, ['web', 'reader']);
  const [web, reader] = [`web_${mark}`, `reader_${mark}`];
  for (const script of speedDatabase(ROWS, web)) await admin.query(script);
  const dir = temporary();
  const imported = await osl(
    ['rls', 'import', 'shop', '--url', postgres.url, '--schema', 'app', '--role', web, '--json'],
    { cwd: dir },
  );
  if (imported.code !== 0) throw new Error(imported.stderr);
  await admin.query(`create role ${reader} login password 'osl'; grant usage on schema app to ${reader};
    grant select on all tables in schema app to ${reader}`);
  for (const table of ['admin', 'member', 'document', 'message', 'note', 'product', 'task'])
    await admin.query(`create policy osl_gateway on app.${table} for select to ${reader} using (true)`);
  writeFileSync(join(dir, 'statements.sql'), STATEMENTS);
  writeFileSync(
    join(dir, 'callers.yaml'),
    `- { name: ann, role: ${web}, settings: { app.tenant: "3" }, claims: { sub: ${ANN} } }\n`,
  );
  // Another policy, which shows fewer tasks.
  const narrow = join(dir, 'narrow');
  cpSync(join(dir, 'shop'), narrow, { recursive: true });
  const policy = readFileSync(join(narrow, 'policy.yaml'), 'utf8');
  const fewer = policy.replaceAll(/rows: (tenant_id = .*)/g, 'rows: $1 and id > 20');
  writeFileSync(join(narrow, 'policy.yaml'), fewer);
  writeFileSync(
    join(dir, 'few.sql'),
    'select id from app.task where id < 50; select count(*) from app.task where id < 50',
  );
  const env = { DATABASE_URL: urlAs(postgres.url, reader, 'osl') };
  const speed = (...args: readonly string[]): Promise<Finished> =>
    osl(['rls', 'speed', 'shop', '--callers', 'callers.yaml', ...args], { cwd: dir, env });
  const file = ['--statements', 'statements.sql'];
  const [json, text, recorded, sampled, unable] = await Promise.all([
    speed('--url', postgres.url, ...file, '--json'),
    speed('--url', postgres.url, ...file, '--no-analyze'),
    speed('--url', postgres.url),
    osl(['rls', 'speed', 'narrow', '--url', postgres.url, '--statements', 'few.sql'], { cwd: dir, env }),
    speed('--url', urlAs(postgres.url, reader, 'osl'), ...file, '--json'),
  ]);
  if (json.code !== 0) throw new Error(json.stderr);
  const results = printed(json);
  const statement = (part: string): Printed => {
    const found = results.find((one) => one.statement.includes(part));
    if (found === undefined) throw new Error(`no statement with ${part}`);
    return found;
  };
  const kinds = ({ reasons = [] }: Printed): readonly string[] => reasons.map(({ kind }) => kind);
  const reason = ({ reasons = [] }: Printed, kind: string): string =>
    reasons.find((one) => one.kind === kind)?.text ?? '';

  t.test('an OR with a function: both are named, and each row is read', async (t) => {
    const found = statement('app.document');
    t.equal(found.faster, 'governed');
    t.strictSame(
      kinds(found),
      ['function per row', 'or without index', 'rows read'],
      JSON.stringify(found.reasons),
    );
    t.match(
      reason(found, 'function per row'),
      /app\.is_admin\(\) \(plpgsql, SECURITY DEFINER\) is called for each of up to 30000 rows/,
    );
    t.match(reason(found, 'or without index'), /index document_owner is not used/);
    t.match(JSON.stringify(found.row_security?.plan), /"Seq Scan"[\s\S]*is_admin/);
    t.match(JSON.stringify(found.governed?.plan), /document_owner/);
    t.ok((found.ratio ?? 0) > 10, `${found.ratio}`);
  });

  t.test('a membership: a function per row, and a subquery that is a filter', async (t) => {
    const byFunction = statement('app.message');
    t.match(
      reason(byFunction, 'function per row'),
      /app\.message: app\.is_member\(\) \(sql, SECURITY DEFINER\)/,
    );
    t.notOk(kinds(byFunction).includes('not leakproof'), 'a function of the policy itself waits for nothing');
    const correlated = statement('from note');
    // By costs, which no other work on the machine changes.
    t.match(text.stdout, /app\.note: a subquery is a filter for each row, so index note_team is not used/);
    t.match(JSON.stringify(correlated.row_security?.plan), /SubPlan/);
    t.equal(byFunction.faster, 'governed');
  });

  t.test('an operator that is not leakproof', async (t) => {
    const found = statement('like ?');
    const plans = [found.row_security?.plan, found.governed?.plan].map((plan) => JSON.stringify(plan));
    t.notMatch(plans[0], 'product_name');
    t.match(plans[1], 'product_name');
    if (found.faster === 'governed')
      t.match(
        reason(found, 'not leakproof'),
        'app.product: index product_name is not used, because the operator ~~ (textlike) is not leakproof',
      );
    // By costs, which no other work on the machine changes.
    t.match(
      text.stdout,
      'index product_name is not used, because the operator ~~ (textlike) is not leakproof',
    );
  });

  t.test('both sides return the same rows, three times each', (t) => {
    const compared = results.filter((one) => one.compared);
    t.equal(compared.length, 8);
    for (const one of compared) {
      t.equal(one.same_rows, true, one.statement);
      t.equal(one.row_security?.rows, one.governed?.rows);
      t.equal(one.row_security?.rounds_ms.length, 3);
    }
    t.equal(statement('from note').row_security?.rows, 3, 'the teams of one member');
    t.end();
  });

  t.test('placeholders get values of rows that the caller sees', (t) => {
    t.ok((statement('like $1').row_security?.rows ?? 0) > 0, 'a row that begins like one of them');
    t.equal(statement('tenant_id = $1').row_security?.rows, 3);
    t.equal(statement('id = $3').governed?.rows, 1);
    t.equal(statement('where $1').reason, 'no value for $1: it is compared with no column of a table');
    t.end();
  });

  t.test('what cannot be compared is listed with the reason', (t) => {
    const why = (part: string): string => statement(part).reason ?? '';
    t.match(why('xmin'), /^the gateway refuses it: E0512 column `xmin`/);
    t.equal(why('for update'), 'it writes or locks rows');
    t.equal(why('app.admin'), 'under row security: permission denied for table admin (42501)');
    t.equal(why('?/?'), 'under row security: it fails with SQLSTATE 22012');
    const [refused] = printed(unable);
    t.match(refused?.reason, `under row security: permission denied to set role "${web}" (42501)`);
    t.end();
  });

  t.test('the table, by costs', (t) => {
    t.equal(text.code, 0, text.stderr);
    t.match(
      text.stdout,
      / # +\| caller \| +statement +\| rows \| row security cost \| governed cost \| +ratio/,
    );
    t.match(text.stdout, /\n1\. row security takes longer:\n {5}app\.document: app\.is_admin\(\)/);
    t.match(
      text.stdout,
      /Not compared:\n {2}select xmin from app\.product \(ann\): the gateway refuses it: E0512/,
    );
    t.end();
  });

  t.test('other rows are seen, also in a count; a caller is made of values in the database', (t) => {
    t.equal(sampled.code, 0, sampled.stderr);
    t.match(sampled.stdout, `${web} 1`);
    t.match(sampled.stdout, /select id from app\.task where id < \? +\| +4, 2 governed \|/);
    t.match(sampled.stdout, /select count\(\*\) from app\.task where id < \? +\| +1, not the same \|/);
    t.match(sampled.stdout, 'other rows in 2; 0 not compared');
    t.end();
  });

  t.test('statements are printed without literals and comments', (t) => {
    t.equal(
      statement('"name"').statement.replace(/\s+/g, ' '),
      'select id from app.product where name in (?, ?, ?) and "name" <> ?',
    );
    for (const { stdout } of [json, text]) t.notMatch(stdout, /geheim/);
    t.end();
  });

  t.test('plans that are not of the known form are refused', (t) => {
    const plan = { 'Node Type': 'Result', 'Plan Rows': 1, 'Total Cost': 0.01 };
    t.match(explainedPlan([{ Plan: plan }]), { cost: 0.01, ms: null, root: { type: 'Result', rows: 1 } });
    for (const [bad, name] of [
      [null, 'the output'],
      [[], 'the output'],
      [[{}], 'Plan'],
      [[{ Plan: { ...plan, 'Total Cost': undefined } }], 'Total Cost'],
      [[{ Plan: { ...plan, 'Node Type': undefined } }], 'Node Type'],
      [[{ Plan: { ...plan, 'Plan Rows': '1' } }], 'Plan Rows'],
      [[{ Plan: { ...plan, Plans: [null] } }], 'Plans'],
      [[{ Plan: plan, 'Execution Time': 1 }], 'Planning Time'],
    ] as const)
      t.throws(() => explainedPlan(bad), { name: 'TypeError', message: new RegExp(`: ${name}$`) });
    t.end();
  });

  t.test('no value of a row is printed', async (t) => {
    const { rows } = await admin.query<{ word: string }>(
      `select left(title, 6) as word from app.document where owner_id = '${ANN}'
       union select left(name, 6) from app.product where tenant_id = 3 and id < 200
       union select left(owner_id::text, 6) from app.document where id < 200`,
    );
    t.ok(rows.length > 100);
    for (const { stdout, stderr } of [json, text, sampled, unable]) {
      t.strictSame(
        rows.filter(({ word }) => stdout.includes(word) || stderr.includes(word)),
        [],
      );
      t.notMatch(stdout, /\d{4}-\d\d-\d\d/);
      t.notMatch(stdout, ANN);
    }
  });

  t.test('subqueries that run for each row, and fences, in plans of Postgres', async (t) => {
    await ready();
    const survey = await surveyPostgres(postgres.url);
    t.teardown(() => survey.close());
    const database = checkedDatabase(await catalogOf(survey), { schemas: null, roles: null });
    const planOf = async (text: string) => {
      const { rows } = await admin.query(`explain (verbose, analyze, timing off, format json) ${text}`);
      return explainedPlan(rows[0]['QUERY PLAN']).root;
    };
    const reasons = async (slow: string, fast: string) => {
      const statement = selectIn(slow);
      const [one, other] = [await planOf(slow), await planOf(fast)];
      const leakproofness = await leakproofnessOf(survey.system, operatorsIn([one, other]));
      const tests = statement.kind === 'select' ? testsOf(statement.node) : [];
      return reasonsFor(one, other, { database, leakproofness, statement: tests, analyzed: true }).map(
        ({ text }) => text,
      );
    };
    const each = `select id from app.note where id < 300 and
      (select count(*) from app.member m where m.team_id = note.team_id) > 0`;
    t.match(await reasons(each, 'select id from app.note where id < 300'), [
      'app.note: a subquery over app.member runs 299 times, once for each row',
    ]);
    await admin.query(
      'create view app.shown with (security_barrier) as select * from app.product where tenant_id = 3',
    );
    const fenced = await reasons(
      "select id from app.shown where name like 'ab%'",
      "select id from app.product where name like 'ab%'",
    );
    t.ok(
      fenced.includes(
        'app.product: a condition is checked above the subquery shown, after all of its rows are read',
      ),
      fenced.join('\n'),
    );
    const plan = explainedPlan([{ Plan: { 'Node Type': 'Result', 'Plan Rows': 0, 'Total Cost': 0 } }]);
    const side = { ms: null, rounds: [], cost: plan.cost, rows: null, plan };
    const nothing = explained(
      {
        kind: 'compared',
        statement: { text: 'select 1', role: null, calls: null },
        caller: { name: 'nobody', role: 'web', settings: {}, claims: {} },
        rowSecurity: side,
        governed: { ...side, sql: 'select 1', attributesMs: 0 },
        sameRows: null,
      },
      database,
      [],
    );
    t.match(nothing, { faster: 'about equal', ratio: 1 }, 'plans that read nothing');
    t.strictSame(
      await reasons('select id from app.task where id = 7', 'select id from app.task where id = 7'),
      [],
    );
  });

  t.test('without pg_stat_statements, the command says what to do', (t) => {
    t.equal(recorded.code, 2);
    t.match(
      recorded.stderr,
      /no extension pg_stat_statements: add pg_stat_statements to shared_preload_libraries.*CREATE EXTENSION.*--statements FILE/,
    );
    t.end();
  });
}
