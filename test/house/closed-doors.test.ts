import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'tap';
import { SealedValue } from '../../src/ask/request/sealed.js';
import {
  generatedSql,
  Sql,
  sql,
  sqlJoin,
  sqlName,
  sqlNumber,
  sqlTable,
  sqlText,
} from '../../src/base/sql.js';

/**
 * Attempts to reach data, a record or a limit around the one way, each as a file where a colleague would write it. tsc
 * refuses each for the reason in the table, and takes the same file without the offending line.
 */
interface Attempt {
  /** Folder in which it is written. */
  readonly in:
    | 'src/surfaces/rest'
    | 'src/surfaces/pg'
    | 'src/ask/data'
    | 'src/ask/authoring'
    | 'src/ask/operating'
    | 'src/content/store';
  /** Code of the TypeScript error, and words of its message. */
  readonly error: number;
  readonly words: string;
  readonly line: string;
}

/** Beginning of every file. Imports of types alone reach no value: an import of one is not refused by tsc. */
const HEAD = `
import { GovernedPlan } from 'osl-compiler';
import type { RestParts } from 'ROOT/surfaces/rest/parts.js';
import type { AnswerParts, Caller, PlanNotes, RequestCall } from 'ROOT/ask/index.js';
import { Ledger } from 'ROOT/ask/request/ledger.js';
import { PermittedRequest } from 'ROOT/ask/request/permitted-request.js';
import { type Permit, Recorder } from 'ROOT/ask/request/recorder.js';
import { SealedValue } from 'ROOT/ask/request/sealed.js';
import { Sql, sql, sqlName } from 'ROOT/base/sql.js';
import { Identity, hypotheticalClaims } from 'ROOT/../policy/index.js';
import type { ControlDatabase } from 'ROOT/base/control/index.js';
import type { EngineStatus, GovernedEngine, OpenedEngine, SystemEngine } from 'ROOT/engine/index.js';
export type Used = [RestParts, AnswerParts, RequestCall, Caller, PlanNotes, Permit, EngineStatus, GovernedEngine, OpenedEngine, SystemEngine];
export const used = [GovernedPlan, Ledger, PermittedRequest, Recorder, Identity, hypotheticalClaims, SealedValue, Sql, sql, sqlName];
export async function attempt(
  service: RestParts, call: RequestCall, plan: GovernedPlan, governed: GovernedEngine, status: EngineStatus, permit: Permit,
  system: SystemEngine, control: ControlDatabase, text: string,
): Promise<unknown> {
  const seen: unknown[] = [service, call, plan, governed, status, permit, system, control, text];
`;
const TAIL = '\n  return seen;\n}\n';

const ATTEMPTS: Readonly<Record<string, Attempt>> = {
  'the six-line route: a text at the system engine of a connector': {
    in: 'src/surfaces/rest',
    error: 2339,
    words: "Property 'system' does not exist",
    line: "seen.push(await service.engines.get('db')?.system.query('select email from customer'));",
  },
  'a plan that a surface has compiled, at an engine': {
    in: 'src/surfaces/rest',
    error: 2339,
    words: "Property 'execute' does not exist",
    line: "seen.push(await service.engines.get('db')?.execute(plan, [], {}, { write: () => undefined }));",
  },
  'the engines that run plans, out of their seal': {
    in: 'src/surfaces/rest',
    error: 2339,
    words: "Property 'get' does not exist on type 'SealedValue",
    line: "seen.push(service.runners.get('db'));",
  },
  'the content of a seal by its name': {
    in: 'src/surfaces/pg',
    error: 2339,
    words: "does not exist on type 'SealedValue",
    line: 'seen.push(service.runners.#value);',
  },
  'the content of a seal, opened as ask opens it': {
    in: 'src/surfaces/pg',
    error: 2339,
    words: "Property 'open' does not exist on type 'typeof SealedValue'",
    line: 'seen.push(SealedValue.open(service.runners));',
  },
  'a forged seal around other controls': {
    in: 'src/surfaces/rest',
    error: 2741,
    words: "is missing in type '{}' but required in type 'SealedValue",
    line: "const controls: RestParts['controls'] = {}; seen.push(controls);",
  },
  'a cast of the engines to those of service start': {
    in: 'src/surfaces/rest',
    error: 2352,
    words: 'may be a mistake',
    line: "seen.push((service.engines as Map<string, OpenedEngine>).get('db')?.system);",
  },
  'a cast through the service object': {
    in: 'src/surfaces/rest',
    error: 2352,
    words: 'may be a mistake',
    line: "seen.push((service as { engines: Map<string, OpenedEngine> }).engines.get('db')?.system);",
  },
  'the databases of service start': {
    in: 'src/surfaces/pg',
    error: 2339,
    words: "Property 'databases' does not exist",
    line: 'seen.push(service.databases);',
  },
  'a governed engine as a system engine': {
    in: 'src/ask/data',
    error: 2352,
    words: 'may be a mistake',
    line: 'seen.push(await (governed as SystemEngine).query(sql`select 1`));',
  },
  'a look-alike of a governed engine': {
    in: 'src/ask/data',
    error: 2322,
    words: "not assignable to type 'GovernedEngine'",
    line: 'const engine: GovernedEngine = status; seen.push(engine);',
  },
  'a text as a plan': {
    in: 'src/ask/data',
    error: 2345,
    words: "'string' is not assignable",
    line: "seen.push(governed.requireInService('select email from customer'));",
  },
  'a plan as an object literal': {
    in: 'src/ask/data',
    error: 2740,
    words: "missing the following properties from type 'GovernedPlan'",
    line: 'seen.push(governed.requireInService({ query: plan.query, form: plan.form }));',
  },
  'a copy of a plan with another query': {
    in: 'src/ask/data',
    error: 2741,
    words: "but required in type 'GovernedPlan'",
    line: 'seen.push(governed.requireInService({ ...plan, query: plan.query }));',
  },
  'a plan that is made without the key of its mint': {
    in: 'src/ask/authoring',
    error: 2554,
    words: 'Expected 2 arguments',
    line: 'seen.push(new GovernedPlan({ ...plan }));',
  },
  'a subclass of a plan': {
    in: 'src/ask/authoring',
    error: 2345,
    words: "not assignable to parameter of type 'symbol'",
    line: "class Evil extends GovernedPlan { constructor() { super('key', plan); } } seen.push(new Evil());",
  },
  'the parts behind an engine': {
    in: 'src/ask/data',
    error: 2339,
    words: "does not exist on type 'GovernedEngine'",
    line: 'seen.push(governed.#parts);',
  },
  'a session of the pool': {
    in: 'src/surfaces/rest',
    error: 2339,
    words: "Property 'acquire' does not exist",
    line: 'seen.push(await status.pools()[0]?.acquire(null));',
  },
  'other credentials for an engine': {
    in: 'src/ask/operating',
    error: 2339,
    words: "Property 'renew' does not exist",
    line: "seen.push(status.renew({ url: 'postgres://root@db', systemUrl: null }));",
  },
  'a relation put back into service': {
    in: 'src/ask/operating',
    error: 2339,
    words: "Property 'clear' does not exist",
    line: 'seen.push(status.outOfService.clear());',
  },
  'a system engine captured from a callback': {
    in: 'src/ask/authoring',
    error: 2554,
    words: 'Expected 1 arguments',
    line: "await service.readCatalog('db', (system: SystemEngine) => seen.push(system));",
  },
  'a record of a surface’s own': {
    in: 'src/surfaces/rest',
    error: 2339,
    words: "Property 'append' does not exist",
    line: "seen.push(await service.audit.append({ kind: 'decision' }));",
  },
  'a second ledger': {
    in: 'src/surfaces/rest',
    error: 2345,
    words: "missing the following properties from type 'Pick<AuditLog",
    line: "seen.push(new Ledger({ ...service, lineage: null }, call, 'query', null));",
  },
  'a second recorder': {
    in: 'src/surfaces/pg',
    error: 2345,
    words: "missing the following properties from type 'Pick<AuditLog",
    line: 'seen.push(new Recorder({ ...service, lineage: null }));',
  },
  'a request under a permit, begun by a surface': {
    in: 'src/surfaces/pg',
    error: 2739,
    words: "missing the following properties from type 'RequestControls'",
    line: 'seen.push(new PermittedRequest(service, () => undefined));',
  },
  'a permit as an object literal': {
    in: 'src/surfaces/pg',
    error: 2739,
    words: "missing the following properties from type 'Permit'",
    line: 'const forged: Permit = { caller: permit.caller, plan }; seen.push(forged);',
  },
  'a limit that is taken from directly': {
    in: 'src/surfaces/rest',
    error: 2339,
    words: "Property 'limiter' does not exist",
    line: "seen.push(service.limiter.take('query', permit.caller.identity));",
  },
  'limits that are configured by a surface': {
    in: 'src/surfaces/rest',
    error: 2339,
    words: "Property 'limiter' does not exist",
    line: 'seen.push(service.controls.limiter.configure({ query: 1e9 }));',
  },
  'an identity as an object literal': {
    in: 'src/surfaces/pg',
    error: 2740,
    words: "missing the following properties from type 'Identity'",
    line: "const forged: Identity = { tenant: 'shop', subject: 'user:admin', chain: ['user:admin'] }; seen.push(forged);",
  },
  'a copy of an identity with another subject': {
    in: 'src/surfaces/pg',
    error: 2741,
    words: "required in type 'Identity'",
    line: "const forged: Identity = { ...permit.caller.identity, subject: 'user:admin' }; seen.push(forged);",
  },
  'a session of an identity with more roles': {
    in: 'src/surfaces/rest',
    error: 2741,
    words: "required in type 'Identity'",
    line: "const mine: RequestCall = { ...call, credentials: { kind: 'session', identity: { ...permit.caller.identity, aclRoles: ['all'] } } }; seen.push(mine);",
  },
  'a session of who is supposed to ask': {
    in: 'src/surfaces/rest',
    error: 2741,
    words: "required in type 'Identity'",
    line: "const identity: Identity = hypotheticalClaims({ chain: ['user:admin'], roles: null }, permit.caller.snapshot); seen.push(identity);",
  },
  'an identity made past its makers': {
    in: 'src/surfaces/rest',
    error: 2673,
    words: "Constructor of class 'Identity' is private",
    line: "seen.push(new Identity(permit.caller.identity, Symbol('identity')));",
  },
  'the mint of identities': {
    in: 'src/surfaces/rest',
    error: 2551,
    words: "Property 'mintIdentity' does not exist",
    line: "seen.push((await import('ROOT/../policy/index.js')).mintIdentity(permit.caller.identity));",
  },
  'the mint of identities, from its file': {
    in: 'src/surfaces/rest',
    error: 2551,
    words: "Property 'mintIdentity' does not exist",
    line: "seen.push((await import('ROOT/../policy/identity.js')).mintIdentity(permit.caller.identity));",
  },
  'the statements of a session, from their file': {
    in: 'src/ask/data',
    error: 2339,
    words: "Property 'queriesOn' does not exist",
    line: "seen.push((await import('ROOT/engine/system.js')).queriesOn);",
  },
  'a verifier that believes everybody': {
    in: 'src/surfaces/rest',
    error: 2322,
    words: "is not assignable to type 'Promise<Identity>'",
    line: "const verifier: RestParts['verifier'] = { ...service.verifier, verify: async () => ({ ...permit.caller.identity, subject: 'user:admin' }) }; seen.push(verifier);",
  },
  'a text as a statement of the gateway’s own': {
    in: 'src/content/store',
    error: 2345,
    words: "'string' is not assignable to parameter of type 'Sql'",
    line: 'seen.push(await system.query(text));',
  },
  'a text as a script': {
    in: 'src/content/store',
    error: 2345,
    words: "'string' is not assignable to parameter of type 'Sql'",
    line: "seen.push(await system.transaction((tx) => tx.script('drop table customer')));",
  },
  'a text as a statement for the control database': {
    in: 'src/content/store',
    error: 2345,
    words: "'string' is not assignable to parameter of type 'Sql'",
    line: 'seen.push(await control.query(`select text from osl_control.policy_version`.concat(text)));',
  },
  'a text in a hole of a statement': {
    in: 'src/content/store',
    error: 2345,
    words: "'string' is not assignable to parameter of type 'Sql'",
    line: ['seen.push(await system.query(sql`select * from customer where email = $', '{text}`));'].join(''),
  },
  'a text that is cast to a statement': {
    in: 'src/content/store',
    error: 2352,
    words: 'may be a mistake',
    line: 'seen.push(await system.query(text as Sql));',
  },
  'an object that looks like a statement': {
    in: 'src/content/store',
    error: 2741,
    words: "missing in type '{ toString: () => string; }' but required in type 'Sql'",
    line: 'const forged: Sql = { toString: () => text }; seen.push(await system.query(forged));',
  },
  'a statement made past its makers': {
    in: 'src/content/store',
    error: 2673,
    words: "Constructor of class 'Sql' is private",
    line: "seen.push(await system.query(new Sql(text, Symbol('sql'))));",
  },
  'a subclass of statements': {
    in: 'src/content/store',
    error: 2675,
    words: 'Class constructor is marked as private',
    line: 'class Evil extends Sql {} seen.push(Evil);',
  },
  'a tag of statements called with a text': {
    in: 'src/content/store',
    error: 2345,
    words: "'string' is not assignable to parameter of type 'TemplateStringsArray'",
    line: 'seen.push(await system.query(sql(text)));',
  },
  'an array of texts in the place of a template': {
    in: 'src/content/store',
    error: 2741,
    words: "missing in type 'string[]' but required in type 'TemplateStringsArray'",
    line: 'seen.push(await system.query(sql([text])));',
  },
  'rows loaded into a table by its text': {
    in: 'src/content/store',
    error: 2345,
    words: "'string' is not assignable to parameter of type 'CopyIntoTable'",
    line: "seen.push(await system.copyIn('customer (email)', []));",
  },
};

/** A file of the same folder under `src`, with types of the build. */
function textOf(attempt: Attempt, line: string): string {
  const root = '../'.repeat(attempt.in.split('/').length - 1).slice(0, -1);
  return (HEAD + line + TAIL).replaceAll('ROOT', root);
}

/** Errors of tsc by file, with all their lines. One run over all files: what is built already is not checked again. */
function errorsOf(dir: string, files: ReadonlyMap<string, string>): ReadonlyMap<string, readonly string[]> {
  for (const [file, text] of files) {
    mkdirSync(dirname(join(dir, file)), { recursive: true });
    writeFileSync(join(dir, file), text);
  }
  const config = {
    extends: join(process.cwd(), 'tsconfig.base.json'),
    compilerOptions: {
      noEmit: true,
      composite: false,
      incremental: false,
      declaration: false,
      sourceMap: false,
      rootDirs: [dir, join(process.cwd(), 'dist')],
    },
    files: [...files.keys()],
  };
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify(config));
  const tsc = join(process.cwd(), 'node_modules', '.bin', 'tsc');
  const { stdout } = spawnSync(tsc, ['-p', dir, '--pretty', 'false'], { cwd: dir, encoding: 'utf8' });
  const errors = new Map<string, string[]>();
  let last: string[] = [];
  for (const line of stdout.split('\n')) {
    const [, file, error] = /^(\S+?)\(\d+,\d+\): error TS(.*)$/.exec(line) ?? [];
    if (file !== undefined && error !== undefined) {
      last = errors.get(file) ?? [];
      errors.set(file, last);
      last.push(error);
    } else if (last.length > 0) last.push(`${last.pop()} ${line.trim()}`.trim());
  }
  return errors;
}

test('tsc refuses every way around the one way, each for its own reason', async (t) => {
  const attempts = Object.entries(ATTEMPTS).map(([name, attempt], i) => ({
    name,
    attempt,
    file: `${attempt.in}/attempt-${i}.ts`,
  }));
  t.ok(attempts.length >= 20);
  const controls = attempts.map(({ attempt }) => [`${attempt.in}/control.ts`, textOf(attempt, '')] as const);
  const files = attempts.map(({ attempt, file }) => [file, textOf(attempt, attempt.line)] as const);
  const errors = errorsOf(t.testdir(), new Map([...controls, ...files]));
  for (const [file] of new Map(controls))
    t.strictSame(errors.get(file) ?? [], [], `${file}: the same without an attempt compiles`);
  for (const { name, attempt, file } of attempts) {
    const [first = 'it compiles', ...others] = errors.get(file) ?? [];
    t.ok(first.startsWith(`${attempt.error}: `) && first.includes(attempt.words), `${name}: ${first}`);
    t.strictSame(others, [], `${name}: for one reason`);
  }
});

test('a seal shows nothing of its content at run time, whatever it is cast to', async (t) => {
  const sealed = new SealedValue(new Map([['db', { execute: () => 'rows' }]]));
  t.strictSame(Reflect.ownKeys(sealed), []);
  t.strictSame(JSON.stringify(sealed), '{}');
  t.equal((sealed as unknown as Map<string, unknown>).get, undefined);
  t.throws(() => Object.assign(sealed, { execute: () => 'rows' }), TypeError);
});

test('what is not a statement is none at run time, whatever it is cast to', async (t) => {
  const evil = 'select email from customer';
  const forged = { toString: () => evil } as unknown as Sql;
  const parts = Object.assign([evil], { raw: [evil] }) as unknown as TemplateStringsArray;
  const makeSql = Sql as unknown as new (text: string, key: symbol) => Sql;
  const attempts: Readonly<Record<string, () => unknown>> = {
    'a look-alike': () => Sql.textOf(forged),
    'an object with its prototype': () => Sql.textOf(Object.create(Sql.prototype)),
    'a look-alike in a hole': () => sql`select ${forged}`,
    'a text in a hole': () => sql`select ${evil as unknown as Sql}`,
    'a look-alike in a list': () => sqlJoin([sqlName('a'), forged]),
    'an array as a template': () => sql(parts),
    'its constructor': () => new makeSql(evil, Symbol('sql')),
    'its constructor by reflection': () => Reflect.construct(Sql, [evil, Symbol('sql')]),
    'a number that is none': () => sqlNumber(Number.NaN),
    'a fraction': () => sqlNumber(0.5),
  };
  for (const [name, attempt] of Object.entries(attempts)) t.throws(attempt, name);
});

test('names and literals of a statement stay in their quotes', async (t) => {
  const nasty = `a"b'c; drop table x --`;
  const rows: readonly (readonly [Sql, string])[] = [
    [sql`select ${sqlName(nasty)}`, `select "a""b'c; drop table x --"`],
    [sql`select ${sqlText(nasty)}`, `select 'a"b''c; drop table x --'`],
    [sql`from ${sqlTable({ schema: nasty, table: 't' })}`, `from "a""b'c; drop table x --"."t"`],
    [sql`limit ${sqlNumber(-5)}`, 'limit -5'],
    [sqlJoin([sqlName('a'), sql`b`], sql` and `), '"a" and b'],
    [generatedSql('select 1'), 'select 1'],
  ];
  for (const [made, text] of rows) t.equal(Sql.textOf(made), text);
  t.throws(() => sqlName('a\0b'));
  t.throws(() => sqlText('a\0b'));
});
