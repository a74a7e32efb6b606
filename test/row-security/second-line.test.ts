import { readFileSync, writeFileSync } from 'node:fs';
import { compile, type GovernedPlan } from 'osl-compiler';
import { Client } from 'pg';
import t from 'tap';
import { effectiveAccess, type IdentityClaims, sessionRights } from '../../policy/index.js';
import { type GovernedEngine, surveyPostgres } from '../../src/engine/index.js';
import type { Connector } from '../../src/model/manifest/index.js';
import {
  rightsKey,
  rowSecurityOf,
  signedRights,
  writeRowSecurity,
} from '../../src/model/row-security/index.js';
import type { Model } from '../../src/model/served-model.js';
import type { TenantKeys } from '../../src/service/keys.js';
import { type OpenService, openService } from '../../src/service/open.js';
import { checkRowSecurity, rowSecurityDesign, rowSecurityKey } from '../../src/service/row-security.js';
import { settingsFrom } from '../../src/service/settings.js';
import { allClear } from '../proof/oracle/copies.js';
import { type Caller, SURFACES, startFrontends } from '../support/frontends.js';
import { NO_NATIVE, startNativePostgres } from '../support/native-postgres.js';
import { replacing } from '../support/replacing.js';
import { sealedParts, sealing } from '../support/sealed-parts.js';
import { temporary } from '../tools/cli/support.js';
import { asOwner, POLICY, project, SCRIPT, URL_ENV } from './hr.js';

t.setTimeout(600_000);

const EU: Caller = { subject: 'user:eu', aclRoles: ['regional', 'everything'] };
const US: Caller = { subject: 'user:us', aclRoles: ['regional'] };
const ALL: Caller = { subject: 'user:all', aclRoles: ['regional'] };
const NONE: Caller = { subject: 'user:none', aclRoles: ['regional'] };
const RED: Caller = { subject: 'user:red', aclRoles: ['other'] };
const VIA_BLUE: Caller = { subject: 'agent:blue', aclRoles: ['other'], chain: ['user:red', 'agent:blue'] };
const VIA_BOT: Caller = { subject: 'agent:bot', aclRoles: ['regional'], chain: ['user:us', 'agent:bot'] };
const EVERYTHING: Caller = { subject: 'user:all', aclRoles: ['everything'] };

/** Ids that each may see. Regions by id: 1 us, 2 jp, 0 eu (mod 3); teams: odd blue, even red. */
const SEEN: readonly (readonly [string, Caller, readonly number[]])[] = [
  ['one region, and a role above the ceiling', EU, [3, 6, 9, 12]],
  ['two regions', US, [1, 2, 4, 5, 7, 8, 10, 11]],
  ['any region', ALL, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]],
  ['an attribute that is missing', NONE, []],
  ['who is not of the team', RED, [1, 3, 5, 7, 9, 11]],
  ['the same through an agent of the other team', VIA_BLUE, []],
  ['what both of a chain see', VIA_BOT, [2, 5, 8, 11]],
];

interface Finding {
  readonly about: string;
  readonly state: string;
  readonly message: string;
  readonly hint: string | null;
}

const ASK = 'select id from employee order by id';
const NO_RIGHTS = '42501';

/** `open` with a compiler that has forgotten whose question it is: every row and column of every entity, in the clear. */
function forgetful(open: OpenService, text: () => string): OpenService {
  const { service } = open;
  const broken = (engine: GovernedEngine): GovernedEngine =>
    replacing(engine, {
      short: () => null, // each question comes by here
      execute: (_plan, _values, options, sink) => {
        const { catalog } = service.model().manifest;
        const plan: GovernedPlan = compile(text(), catalog, allClear(catalog));
        return engine.execute(plan, [], options, sink);
      },
    });
  const engines = new Map([...sealedParts(service).engines].map(([name, engine]) => [name, broken(engine)]));
  return { ...open, service: sealing(service, { engines }) };
}

const postgres = await startNativePostgres();
if (postgres === null) {
  t.test('the second line', { skip: NO_NATIVE }, async () => undefined);
} else {
  process.env[URL_ENV] = postgres.readerUrl;
  await asOwner(postgres, SCRIPT);
  const here = project(temporary(), postgres);
  const { dir, dataDir, manifestFile, policyFile } = here;
  const settings = settingsFrom({}, dir, { manifestFile, policyFile, dataDir, poolSize: 2 });
  const lines: string[] = [];
  const tell = (message: string, fields?: Readonly<Record<string, unknown>>): void => {
    lines.push(`${message} ${JSON.stringify(fields ?? {})}`);
  };
  const log = { info: tell, warn: tell, error: tell };
  t.teardown(() => postgres.stop());

  const written = async (connector: Connector, model: Model, keys: TenantKeys): Promise<void> => {
    const owner = await surveyPostgres(postgres.url);
    const design = rowSecurityDesign(connector, 'osl_reader', model);
    await writeRowSecurity(owner.system, design, rowSecurityKey(keys, connector.name));
    owner.close();
  };

  const ids = async (open: OpenService, caller: Caller, surface: (typeof SURFACES)[number], text = ASK) => {
    const frontends = await startFrontends(open);
    const asker = await frontends.asker(surface, caller);
    const { outcome } = await asker.ask(text);
    asker.end();
    await frontends.stop();
    return outcome.kind === 'rows' ? outcome.rows.map(([id]) => Number(id)) : outcome.sqlstate;
  };

  t.test('a service that asks for it does not start where it does not stand', async (t) => {
    await t.rejects(openService(settings, log), {
      name: 'StartProblem',
      message:
        /`db` asks for row security, which does not stand .*no policy of ours stands on hr\.employee.*--write/,
    });
    const looked = await here.rowSecurity();
    t.equal(looked.code, 1);
    t.match(looked.stdout, /^db: does not stand \(2 tables, role "osl_reader", version [0-9a-f]{32}\)\n/);
    t.match(looked.stdout, /hr\.vault\.id may be read, though no grant reaches the table/);
    const denied = await here.rowSecurity('--write', '--url', postgres.readerUrl);
    t.equal(denied.code, 2);
    t.match(denied.stderr, /role "osl_reader" does not own hr\.employee, hr\.note\n {2}hint: .*--url/);
  });

  t.test('the owner writes it, once', async (t) => {
    const written = await here.rowSecurity('--write', '--url', postgres.url);
    t.equal(written.code, 0, written.stderr);
    t.match(written.stdout, /^db: stands \(2 tables/);
    const again = await here.rowSecurity('--write', '--url', 'postgres://nobody@127.0.0.1:1/nothing');
    t.equal(again.code, 0, 'what stands is not written again, so that nobody is connected to');
    t.equal((await here.rowSecurity('--json')).code, 0);
    const report: { readonly findings: readonly Finding[] } = JSON.parse((await here.doctor()).stdout);
    const ours = report.findings.filter((f) => f.about === 'database db');
    t.same(
      ours.filter((f) => f.state === 'fail'),
      [],
    );
    t.ok(ours.some((f) => f.message === 'row security matches the policy: 2 tables'));
  });

  t.test('answers are the same; and those of a compiler that forgot the policy as well', async (t) => {
    const open = await openService(settings, log);
    t.teardown(() => open.close());
    const broken = forgetful(open, () => ASK);
    for (const surface of SURFACES) {
      for (const [what, caller, seen] of SEEN) {
        t.same(await ids(open, caller, surface), seen, `${surface}: ${what}`);
        t.same(await ids(broken, caller, surface), seen, `${surface}, broken: ${what}`);
      }
      const everything = `${surface}, broken: `;
      const notes = forgetful(open, () => 'select id from note');
      t.same(await ids(notes, EU, surface), [], `${everything}a table that only roles above the ceiling see`);
      const barred: Caller = { subject: 'user:barred', aclRoles: ['everything', 'barred'] };
      const noted = 'select id from note order by id';
      t.same(await ids(notes, barred, surface, ASK), [], `${everything}a table that a deny rule names`);
      t.equal((await ids(open, EVERYTHING, surface, noted)).length, 12, 'who may sees it');
      const ssn = forgetful(open, () => 'select ssn from employee');
      t.equal(await ids(ssn, EU, surface), NO_RIGHTS, `${everything}a column that is masked for everybody`);
      const masked = "select count(*) from employee where ssn = '[redacted]'";
      t.same(await ids(open, EU, surface, masked), [4], 'a mask needs no column under it');
    }
  });

  t.test('so do the steps before a statement, samples and raw SQL', async (t) => {
    const open = await openService(settings, log);
    t.teardown(() => open.close());
    const frontends = await startFrontends(open);
    t.teardown(() => frontends.stop());
    const walk = await frontends.asker('simple wire', EVERYTHING);
    const walked = await walk.ask(
      "select id, depth from TRAVERSE(anchor => 'note', target => 'employee', keys => array[2, 5])",
    );
    walk.end();
    t.match(walked.outcome, { kind: 'rows' }, JSON.stringify(walked.outcome));
    t.equal(walked.outcome.kind === 'rows' && walked.outcome.rows.length, 2);
    const raw = await frontends.asker('REST', EU, 'sql');
    const counted = await raw.ask('select count(*) from hr.employee');
    t.match(counted.outcome, { kind: 'rows', rows: [['4']] }, JSON.stringify(counted.outcome));
    const sampled = await fetch(`http://127.0.0.1:${frontends.httpPort}/osl/sample`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await frontends.token(EU)}`, 'content-type': 'application/json' },
      body: JSON.stringify({ kind: 'table', name: 'employee', limit: 10 }),
    });
    t.equal(((await sampled.json()) as { readonly rows: readonly unknown[] }).rows.length, 4);
  });

  t.test('rights go with the statement: sessions that callers share show each its own', async (t) => {
    const open = await openService(settings, log);
    t.teardown(() => open.close());
    const frontends = await startFrontends(forgetful(open, () => ASK));
    t.teardown(() => frontends.stop());
    const callers = await Promise.all(
      SEEN.map(async ([what, caller, seen]) => ({
        what,
        seen,
        asker: await frontends.asker('extended wire', caller),
      })),
    );
    // Enough for the statement to be known as short, so that callers are pipelined onto one session.
    for (let round = 0; round < 30; round++) {
      const replies = await Promise.all(callers.map(({ asker }) => asker.ask(ASK)));
      const wrong = replies.filter(({ outcome }, i) => {
        const got = outcome.kind === 'rows' ? outcome.rows.map(([id]) => Number(id)) : outcome.sqlstate;
        return JSON.stringify(got) !== JSON.stringify(callers[i]?.seen);
      });
      t.same(wrong, [], `round ${round}`);
    }
    const [eu] = callers;
    await eu?.asker.ask('begin isolation level repeatable read');
    for (let i = 0; i < 2; i++) {
      const { outcome } = (await eu?.asker.ask(ASK)) ?? {};
      t.same(outcome?.kind === 'rows' && outcome.rows.length, 4, 'in a transaction too');
    }
    await eu?.asker.ask('commit');
    for (const { asker } of callers) asker.end();
  });

  t.test('who speaks as the governed role past the gateway sees nothing, and forges nothing', async (t) => {
    const open = await openService(settings, log);
    t.teardown(() => open.close());
    const { manifest, snapshot } = open.service.model();
    const connector = manifest.connectors.get('db');
    if (snapshot === null || connector === undefined) throw new Error('there is no model');
    const identity: IdentityClaims = {
      tenant: 'hr',
      subject: 'user:eu',
      chain: ['user:eu'],
      roles: [],
      aclRoles: ['regional'],
      issuedAt: 0,
      expiresAt: Number.MAX_SAFE_INTEGER,
      tokenId: 'x',
    };
    t.notOk(effectiveAccess(identity, snapshot, manifest.catalog).dataRoles.has('everything'));
    const key = rightsKey(open.keys.masking, 'db');
    const { version } = rowSecurityOf(connector, 'osl_reader', manifest.catalog, snapshot);
    const mine = sessionRights(identity, snapshot, [], null);
    const signed = (over: Partial<typeof mine> = {}, of = version, by = key, at = Date.now()): string =>
      signedRights({ ...mine, ...over }, of, by, at);
    const client = new Client({ connectionString: postgres.readerUrl });
    await client.connect();
    t.teardown(() => client.end());
    const shown = async (rights: string | null, sql = 'select id from hr.employee'): Promise<unknown> => {
      await client.query('begin');
      try {
        if (rights !== null) await client.query("select set_config('osl.rights', $1, true)", [rights]);
        return (await client.query({ text: sql, rowMode: 'array' })).rows.length;
      } catch (error) {
        return error instanceof Error && 'code' in error ? `${String(error.code)} ${error.message}` : error;
      } finally {
        await client.query('rollback');
      }
    };
    t.equal(await shown(signed()), 4, 'rights of the gateway are taken');
    t.equal(await shown(null), '42501 osl: no rights came with the statement');
    t.match(await shown(''), /^42501 osl: no rights/);
    const forged = signed().replace('"roles":["regional"]', '"roles":["everything"]');
    t.not(forged, signed());
    t.match(await shown(forged), /^42501 osl: the rights are not signed/);
    t.match(await shown('x'), /^42501 osl: the rights are not signed/);
    const other = rightsKey(open.keys.masking, 'other');
    t.match(await shown(signed({ roles: ['everything'] }, version, other)), /^42501 .*not signed/);
    t.match(await shown(signed({}, 'older')), /^42501 osl: the rights are of another policy/);
    t.match(
      await shown(signed({}, version, key, Date.now() - 3_600_000)),
      /^42501 osl: the rights have ended/,
    );
    t.equal(await shown(signed({ roles: ['nothing'] })), 0, 'a role that is not there');
    t.equal(await shown(signed({ chain: [new Map()] })), 0, 'a missing attribute');
    t.equal(await shown(signed({ chain: [] })), 0, 'nobody');
    t.equal(
      await shown(signed({ denyingRoles: ['barred'], roles: ['everything'] }), 'select id from hr.note'),
      0,
    );
    // What a caller could do whose text ran: other rights in the middle of a statement.
    const swap = `select id from hr.employee union all select length(set_config('osl.rights', '${forged}', true))
                  union all select id from hr.note`;
    t.match(await shown(signed(), swap), /^42501 .*not signed/);
    t.equal(await shown(signed(), swap.replace(forged, signed())), 5, 'the same with rights that are good');
    for (const sql of [
      'select * from osl_row_security.state',
      'select osl_row_security.rights()',
      'select * from hr.vault',
      'select ssn from hr.employee',
      'set role postgres',
      'alter table hr.employee disable row level security',
      'create or replace function osl_row_security.granted(text[], text[]) returns boolean language sql as $$select true$$',
    ])
      t.match(await shown(signed(), sql), /^42501 /, sql);
    // Names of our functions' own are found in pg_catalog, whatever the session says.
    await client.query(
      `create temp table jsonb_array_elements (x int); set search_path = pg_temp, hr, pg_catalog`,
    );
    t.equal(await shown(signed()), 4);
  });

  t.test('attributes change with a reload; what a role sees changes once it is written', async (t) => {
    const open = await openService(settings, log);
    t.teardown(() => open.close());
    t.teardown(() => writeFileSync(policyFile, POLICY));
    const moved = POLICY.replace('region: eu }', 'region: jp }');
    writeFileSync(policyFile, moved);
    await open.reload();
    const broken = forgetful(open, () => ASK);
    t.same(await ids(broken, EU, 'REST'), [2, 5, 8, 11], 'an attribute is no part of what stands');
    const wider = moved.replace(
      `rows: "region = attribute('region')"`,
      `rows: "region = attribute('region') or id = 1"`,
    );
    t.not(wider, moved);
    writeFileSync(policyFile, wider);
    await t.rejects(open.reload(), { message: /another version of policy\.yaml.*osl row-security --write/ });
    t.same(await ids(open, EU, 'simple wire'), [2, 5, 8, 11], 'what served goes on');
    const written = await here.rowSecurity('--write', '--url', postgres.url);
    t.equal(written.code, 0, written.stderr);
    t.match(written.stderr, /takes it up at its reload/);
    t.equal(
      await ids(open, EU, 'simple wire'),
      NO_RIGHTS,
      'until then nothing is answered, rather than wrong',
    );
    t.ok(
      lines.some((line) => line.includes('of another policy than stands here')),
      'the operator hears why',
    );
    await open.reload();
    for (const one of [open, broken]) t.same(await ids(one, EU, 'simple wire'), [1, 2, 5, 8, 11]);
    writeFileSync(policyFile, POLICY);
    t.equal((await here.rowSecurity('--write', '--url', postgres.url)).code, 0);
  });

  t.test('what is published may not need other policies', async (t) => {
    const open = await openService(settings, log);
    t.teardown(() => open.close());
    const frontends = await startFrontends(open);
    t.teardown(() => frontends.stop());
    const admin = await frontends.token({ subject: 'user:all', aclRoles: [], roles: ['TENANT_ADMIN'] });
    const publish = async (text: string) => {
      const { manifest } = open.service.model();
      const reply = await fetch(`http://127.0.0.1:${frontends.httpPort}/osl/objects`, {
        method: 'POST',
        headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json' },
        body: JSON.stringify({ fragment: text, base_version: manifest.version }),
      });
      return { status: reply.status, body: await reply.text() };
    };
    const wider = await publish(
      'entities: {note: {source: db.hr.vault, primary_key: [id], entity_key_columns: [id, employee_id], columns: {id: , employee_id: {column: id}, body: {column: secret}}}}',
    );
    t.equal(wider.status, 422, wider.body);
    t.match(wider.body, /needs other row security: make it in the manifest file/);
    const metric = await publish('metrics: {heads: {entity: employee, expression: count(*)}}');
    t.equal(metric.status, 201, metric.body);
    t.same(await ids(open, EU, 'REST', 'select measure(heads) from employee'), [4]);
  });

  t.test('others of the database notice nothing', async (t) => {
    await asOwner(
      postgres,
      `do $$ begin create role osl_second_app login password 'app'; exception when duplicate_object then null; end $$;
       grant usage on schema hr to osl_second_app; grant select, insert, delete on hr.employee to osl_second_app`,
    );
    t.teardown(() => asOwner(postgres, 'drop owned by osl_second_app'));
    const url = new URL(postgres.readerUrl);
    url.username = 'osl_second_app';
    url.password = 'app';
    const app = new Client({ connectionString: url.href });
    await app.connect();
    t.teardown(() => app.end());
    t.equal((await app.query('select * from hr.employee')).rows.length, 12);
    await app.query(
      "insert into hr.employee values (99, 'new', 'eu'); delete from hr.employee where id = 99",
    );
  });

  t.test('whatever was changed since is found', async (t) => {
    const CHANGES: readonly (readonly [string, string, RegExp])[] = [
      [
        'alter table hr.note disable row level security',
        'alter table hr.note enable row level security',
        /row security of hr\.note is switched off/,
      ],
      [
        'create policy more on hr.note for select using (true)',
        'drop policy more on hr.note',
        /policy more of hr\.note shows the governed role more rows/,
      ],
      [
        'grant select on hr.employee to osl_reader',
        'revoke select (ssn) on hr.employee from osl_reader; revoke select on hr.employee from osl_reader; grant select (id, name, region, team, salary) on hr.employee to osl_reader',
        /hr\.employee\.ssn may be read, though no grant needs it/,
      ],
      [
        'revoke select (team) on hr.employee from osl_reader',
        'grant select (team) on hr.employee to osl_reader',
        /hr\.employee\.team may not be read, though a grant needs it/,
      ],
      [
        'grant select (secret) on hr.vault to osl_reader',
        'revoke select (secret) on hr.vault from osl_reader',
        /hr\.vault\.secret may be read/,
      ],
      [
        `update osl_row_security.state set version = 'x'`,
        '',
        /the rights are of another policy than stands here/,
      ],
      [`alter policy osl_rows on hr.note using (true)`, '', /policy osl_rows of hr\.note was altered/],
      [
        'create or replace function osl_row_security.denied(roles text[]) returns boolean language sql as $$select false$$',
        '',
        /function osl_row_security\.denied is not as it was made/,
      ],
      ['drop policy osl_rows on hr.employee', '', /no policy of ours stands on hr\.employee/],
    ];
    const open = await openService(settings, log);
    t.teardown(() => open.close());
    const model = open.service.model();
    const connector = model.manifest.connectors.get('db');
    if (connector === undefined) throw new Error('there is no connector');
    const faults = async () => (await checkRowSecurity(connector, model, open.keys)).faults;
    for (const [change, back, fault] of CHANGES) {
      await asOwner(postgres, change);
      const found = await faults();
      t.ok(
        found.some((f) => fault.test(f)),
        `${change}: ${found.join('; ')}`,
      );
      if (back !== '') await asOwner(postgres, back);
      else await written(connector, model, open.keys);
      t.same(await faults(), [], `mended: ${change}`);
    }
    await asOwner(postgres, 'alter table hr.note owner to osl_reader');
    t.same(await faults(), ['the governed role owns hr.note: its policies do not hold for it']);
    await asOwner(postgres, 'alter table hr.note owner to postgres');
    await written(connector, model, open.keys);
    await asOwner(postgres, 'alter table hr.note disable row level security');
    const report: { readonly findings: readonly Finding[] } = JSON.parse((await here.doctor()).stdout);
    const told = report.findings.filter((f) => f.message === 'row security of hr.note is switched off');
    t.match(told, [{ about: 'database db', state: 'fail', hint: /osl row-security --write/ }]);
    t.equal((await here.rowSecurity()).code, 1);
    await written(connector, model, open.keys);
  });

  t.test('what is not ours in our schema is never removed', async (t) => {
    const THEIRS = [
      ['function', 'osl_row_security.theirs()', 'returns int4 language sql as $$select 1$$'],
      ['function', 'osl_row_security.denied(roles int4)', 'returns boolean language sql as $$select true$$'],
      ['aggregate', 'osl_row_security.total(int4)', '(sfunc = int4pl, stype = int4)'],
      ['table', 'osl_row_security.more', '(id int4)'],
    ] as const;
    for (const [kind, name, rest] of THEIRS) {
      await asOwner(postgres, `create ${kind} ${name} ${rest}`);
      const before = JSON.parse((await here.rowSecurity('--json')).stdout);
      const dropped = await here.rowSecurity('--drop', '--url', postgres.url);
      t.equal(dropped.code, 2, name);
      t.match(dropped.stderr, /2BP01\n.*`osl_row_security`.*nothing was changed/);
      t.same(JSON.parse((await here.rowSecurity('--json')).stdout), before);
      await asOwner(postgres, `drop ${kind} ${name}`);
    }
  });

  t.test('where somebody has policies of their own, ours only takes away', async (t) => {
    t.equal((await here.rowSecurity('--drop', '--url', postgres.url)).code, 0);
    await asOwner(
      postgres,
      `alter table hr.note enable row level security;
       create policy theirs on hr.note using (id <= 6)`,
    );
    t.teardown(() =>
      asOwner(postgres, 'drop policy theirs on hr.note; alter table hr.note disable row level security'),
    );
    const script = await here.rowSecurity('--sql');
    t.match(script.stderr, /keep it as a secret/);
    await asOwner(postgres, script.stdout);
    const open = await openService(settings, log);
    t.teardown(() => open.close());
    const notes = forgetful(open, () => 'select id from note order by id');
    t.same(await ids(notes, EVERYTHING, 'REST'), [1, 2, 3, 4, 5, 6]);
    t.same(await ids(notes, EU, 'REST'), []);
    await open.close();
    t.equal((await here.rowSecurity('--drop', '--url', postgres.url)).code, 0);
    const sql = readFileSync(policyFile, 'utf8');
    t.equal(sql, POLICY);
    const left = new Client({ connectionString: postgres.url });
    await left.connect();
    const { rows } = await left.query(
      `select relname, relrowsecurity from pg_class where relnamespace = 'hr'::regnamespace and relkind = 'r' and relrowsecurity`,
    );
    const { rows: policies } = await left.query('select polname from pg_policy');
    await left.end();
    t.same(
      rows.map((r) => r.relname),
      ['note'],
      'what was on stays on',
    );
    t.same(
      policies.map((r) => r.polname),
      ['theirs'],
    );
  });
}
