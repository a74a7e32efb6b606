import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client as McpClient } from '@modelcontextprotocol/client';
import tap, { type Test } from 'tap';
import { makeKeys } from '../../../src/service/keys.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { controlHouse, migrated, placeOf, SKIP, until } from '../../control/support.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';
import { policyText } from '../../support/model-text.js';
import { call, connected, transportTo } from '../../surfaces/mcp/support.js';
import { type Reply, type RestFixture, startRest } from '../../surfaces/rest/fixture.js';
import { query } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';

/** A grant that needs an approval shows nothing before a person has approved it, nor after the approval has ended. */
tap.setTimeout(300_000);

const policy = (columns = 'id, name, email'): string =>
  policyText(
    'shop',
    {
      'user:kim': 'payroll, sales { purposes: [audit] }',
      'user:sam': 'payroll, steward',
      'user:lee': 'steward',
      'user:pat': 'steward',
      'user:ann': 'sales',
      'user:root': 'sales { admin: [TENANT_ADMIN] }',
      'agent:bot': 'payroll, sales, steward',
    },
    `roles:
  payroll:
    grants:
      - { on: customer, columns: [${columns}], unmask: [pii], approval: { by: steward, minutes: 30 } }
  sales:
    grants:
      - { on: order, columns: "*" }
      - { on: product, columns: "*", approval: { by: TENANT_ADMIN, minutes: 5 } }
  steward:
    grants: []
purposes: { audit: {} }
masks: { pii: redact, secret: redact, birth: redact }
limits: { query: 100000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`,
  );

const STATEMENT = 'select email from osl.entities.customer where id = 1';
const CLEAR = /ada@eu/;
type Json = Record<string, unknown>;

/** One gateway, with the requests of this test. */
class Gateway {
  readonly rest: RestFixture;
  readonly pgPort: number;

  private constructor(rest: RestFixture, pgPort: number) {
    this.rest = rest;
    this.pgPort = pgPort;
  }

  static async start(t: Test, settings: object = {}): Promise<Gateway> {
    const rest = await startRest({ mcp: {}, policy: policy(), settings });
    const pg = createPgFrontend(rest.test.service);
    const { port } = await pg.listen(0, '127.0.0.1');
    t.teardown(async () => {
      await pg.stop(0);
      await rest.close();
    });
    return new Gateway(rest, port);
  }

  ask(
    subject: string,
    headers: Record<string, string> = {},
    chain = [subject],
    osql = STATEMENT,
  ): Promise<Reply> {
    return this.rest.ask(
      subject,
      { osql },
      { headers, chain, ...(chain.length > 1 && { aclRoles: ['payroll'] }) },
    );
  }

  async send(
    subject: string,
    path: string,
    body: Json | null,
    headers = {},
    chain = [subject],
  ): Promise<Reply> {
    const roles = subject === 'user:root' ? ['TENANT_ADMIN'] : [];
    const claims = { roles, chain, ...(chain.length > 1 && { aclRoles: ['payroll', 'steward'] }) };
    const authorization = `Bearer ${await this.rest.test.token(subject, claims)}`;
    const sent = { authorization, 'content-type': 'application/json', ...headers };
    return this.rest.send(path, { headers: sent, ...(body !== null && { method: 'POST', body }) });
  }

  /** Requests an approval for the statement; returns its id. */
  async request(subject: string, reason: string, headers = {}, chain = [subject]): Promise<string> {
    const body = { statement: STATEMENT, reason };
    const reply = await this.send(subject, '/osl/access-requests', body, headers, chain);
    const { approval } = reply.json() as { approval: Json };
    return String(approval['id']);
  }

  decide(subject: string, id: string, body: Json, chain = [subject]): Promise<Reply> {
    return this.send(subject, `/osl/approvals/${id}`, body, {}, chain);
  }

  async list(subject: string): Promise<readonly Json[]> {
    return (await this.send(subject, '/osl/approvals', null)).json()['approvals'] as Json[];
  }

  /** Waits until the subject sees the address, or no longer. */
  async sees(subject: string, wanted: boolean, headers = {}): Promise<void> {
    await until(async () => CLEAR.test((await this.ask(subject, headers)).text) === wanted);
  }

  async session(subject: string): Promise<Client> {
    return Client.login(this.pgPort, subject, await this.rest.test.token(subject));
  }
}

async function said(client: Client): Promise<string> {
  return (await client.ask(query('select email from customer where id = 1'))).join('\n');
}

/** Ends what is in force, so that tests do not depend on each other. */
async function revokeAll(gateway: Gateway): Promise<void> {
  for (const by of ['user:lee', 'user:root'])
    for (const { id, state, may_decide: may } of await gateway.list(by)) {
      if (may !== true) continue;
      if (state === 'open') await gateway.decide(by, String(id), { decision: 'decline' });
      if (state === 'approved') await gateway.decide(by, String(id), { decision: 'revoke' });
    }
}

interface Stand {
  readonly gateways: readonly Gateway[];
  /** Place where requests are decided. */
  readonly place: string;
  /** From the second gateway to the control database. */
  readonly line: FaultProxy | null;
}

async function withStore(t: Test, store: 'files' | 'control'): Promise<Stand> {
  if (store === 'files')
    return {
      gateways: [await Gateway.start(t, { console: 'on' })],
      place: '/console/#/requests',
      line: null,
    };
  const house = await controlHouse(t);
  await migrated(house);
  const line = await startFaultProxy(Number(new URL(house.gateway).port));
  const control = (url: string) => ({ place: placeOf(url), policySource: 'file', silenceMs: 120_000 });
  const dir = t.testdir();
  const keysDir = join(dir, 'keys');
  makeKeys(dir, keysDir);
  const one = await Gateway.start(t, { control: control(house.gateway), keysDir });
  const two = await Gateway.start(t, { control: control(line.by(house.gateway)), keysDir });
  return { gateways: [one, two], place: '/osl/approvals', line };
}

for (const store of ['files', 'control'] as const)
  tap.test(`approvals in ${store}`, { skip: store === 'control' ? SKIP : false }, async (t) => {
    const { gateways, place, line } = await withStore(t, store);
    const [here = await Gateway.start(t), there = here] = gateways;
    const { test: shop } = here.rest;

    await t.test(
      'a query that only lacks an approval is refused with the way to it, on every surface',
      async (t) => {
        const reply = await here.ask('user:kim');
        t.match(reply.json(), {
          status: 403,
          code: 'E0535',
          detail: /approval for `customer`/,
          hint: /OSL-Approval-Reason/,
        });
        const none = await here.ask('user:kim', {}, ['user:kim'], STATEMENT.replace('= 1', '= 99'));
        const { request_id: _a, ...first } = reply.json();
        const { request_id: _b, ...twin } = none.json();
        t.strictSame(twin, first, 'the same for a row that does not exist');
        t.match(await shop.records(reply.requestId), [{ decision: 'deny', code: 'E0535' }]);
        const session = await here.session('user:kim');
        t.match(await said(session), /E ERROR 42501.*approval.*SET osl.approval_reason/s);
        await session.end();
        const mcp = await connected(here.rest, 'user:kim', 'auto');
        const called = await call(mcp, 'semantic_query', { osql: STATEMENT });
        t.ok(called.isError);
        t.match(called.content, { status: 403, problem: { code: 'E0535', hint: /osl.approval_reason/ } });
        await mcp.close();
        t.match((await here.ask('user:ann')).json(), { code: 'E0512' }, 'nothing is told without the grant');
        const broken = await here.ask(
          'user:kim',
          {},
          ['user:kim'],
          'select nothing_such from osl.entities.customer',
        );
        t.match(broken.json(), { code: 'E0512' }, 'an approval would not help');
      },
    );

    await t.test(
      'a reason that is stated with the query requests the approval, on every surface',
      async (t) => {
        const reason = 'Rechnung für “Süß & Söhne”';
        const asked = await here.ask('user:kim', { 'osl-approval-reason': encodeURIComponent(reason) });
        const [view] = await there.list('user:lee');
        const id = String(view?.['id']);
        t.match(asked.json(), { code: 'E0535', hint: `requested as ${id}, to be decided at ${place};` });
        t.match(view, { state: 'open', reason, statement: STATEMENT });
        t.match(await shop.records(asked.requestId), [{ decision: 'deny', detail: new RegExp(id) }]);
        const bad = await here.ask('user:kim', { 'osl-approval-reason': 'two%0Alines' });
        t.match(bad.json(), { code: 'E0511' });
        const session = await here.session('user:kim');
        await session.ask(query("set osl.approval_reason = 'from the wire'"));
        t.match(await said(session), /E ERROR 42501.*requested as/s);
        await session.end();
        const claims = { headers: { 'osl-approval-reason': encodeURIComponent(reason) } };
        t.match((await here.rest.ask('user:ann', { osql: STATEMENT }, claims)).json(), { code: 'E0512' });
        for (const action of ['decline', 'accept'] as const) {
          const client = new McpClient(
            { name: 'test', version: '1' },
            { versionNegotiation: { mode: 'auto' }, capabilities: { elicitation: {} } },
          );
          const questions: string[] = [];
          client.setRequestHandler('elicitation/create', ({ params }) => {
            questions.push(params.message);
            return { action, content: { approval_reason: 'asked by the agent' } };
          });
          const authorization = `Bearer ${await shop.token('user:kim')}`;
          await client.connect(transportTo(here.rest, { authorization }));
          const called = await call(client, 'semantic_query', { osql: STATEMENT });
          t.match(questions, [/approval for `customer`/], 'the user is asked once');
          const hint = action === 'accept' ? /requested as/ : /OSL-Approval-Reason/;
          t.match(called, { isError: true, content: { problem: { code: 'E0535', hint } } });
          await client.close();
        }
        const reasons = (await there.list('user:lee')).map((one) => one['reason']);
        t.strictSame(reasons.sort(), [reason, 'asked by the agent', 'from the wire'].sort());
        await revokeAll(here);
      },
    );

    await t.test('who sees a request, and what of it', async (t) => {
      const id = await here.request('user:kim', 'invoice 17 is wrong');
      t.equal(await here.request('user:kim', 'invoice 17 is wrong'), id, 'the same request is one');
      const [forLee] = (await there.list('user:lee')).filter(({ state }) => state === 'open');
      t.match(forLee, {
        id,
        state: 'open',
        chain: ['user:kim'],
        reason: 'invoice 17 is wrong',
        statement: STATEMENT,
        statement_shape: /where id = \?$/,
        grants: [
          { on: 'customer', changed: false, grant: { columns: ['id', 'name', 'email'], unmask: ['pii'] } },
        ],
        minutes: 30,
        may_decide: true,
      });
      t.match(await there.list('user:kim'), [
        { id, statement: STATEMENT, may_decide: false, grants: [{ grant: null }] },
      ]);
      t.match(await there.list('user:root'), [{ id, statement: null, reason: null, may_decide: false }]);
      t.strictSame(await there.list('user:ann'), []);
      t.match((await shop.records()).filter(({ action }) => action === 'request_access').at(0), {
        decision: 'allow',
        detail: new RegExp(`"approval":"${id}","reason":"invoice 17`),
      });
      const plain = await here.send('user:ann', '/osl/access-requests', {
        object: 'osl.entities.customer',
        reason: 'x',
      });
      t.match(plain.json(), { approval: null }, 'who has no such grant asks the owner alone');
      for (let i = 0; i < 4; i++) await here.request('user:kim', `reason ${i}`);
      const more = { statement: STATEMENT, reason: 'reason 5' };
      t.match((await here.send('user:kim', '/osl/access-requests', more)).json(), {
        status: 429,
        code: 'E4290',
      });
      await revokeAll(here);
    });

    await t.test('nobody approves for themselves, nor without the role', async (t) => {
      const denied = { status: 403, code: 'E2101' };
      const own = await here.request('user:sam', 'I need this now');
      const delegated = await here.request('agent:bot', 'an agent needs it', {}, ['user:sam', 'agent:bot']);
      const approve = { decision: 'approve' };
      t.match((await here.decide('user:sam', own, approve)).json(), denied, 'a steward, but the requester');
      t.match(
        (await here.decide('user:sam', delegated, approve)).json(),
        denied,
        'in the chain of the request',
      );
      t.match((await here.decide('agent:bot', delegated, approve)).json(), denied);
      t.match(
        (await here.decide('agent:bot', own, approve, ['user:lee', 'agent:bot'])).json(),
        denied,
        'an agent',
      );
      t.match((await here.decide('user:kim', own, approve)).json(), denied, 'no steward');
      t.match(
        (await here.decide('user:root', own, approve)).json(),
        denied,
        'an administrator is no steward',
      );
      t.match((await here.decide('user:lee', '00000000-0000-4000-8000-000000000000', approve)).json(), {
        status: 404,
      });
      t.match((await here.ask('user:sam')).json(), { code: 'E0535' });
      const product = { object: 'osl.entities.product', reason: 'labels for the fair' };
      const asked = (await here.send('user:kim', '/osl/access-requests', product)).json() as {
        approval: Json;
      };
      const { id } = asked.approval;
      t.match(
        (await here.decide('user:lee', String(id), approve)).json(),
        denied,
        'a steward is no administrator',
      );
      t.match((await here.decide('user:root', String(id), approve)).json(), { state: 'approved' });
      await revokeAll(here);
    });

    await t.test(
      'approved, it counts for this chain at once, is on record, and ends when it is revoked',
      async (t) => {
        const session = await there.session('user:kim');
        t.teardown(() => session.end());
        t.match(await said(session), /42501/);
        const id = await here.request('user:kim', 'invoice 17 is wrong');
        const decided = await there.decide('user:lee', id, { decision: 'approve', minutes: 9 });
        t.match(decided.json(), { id, state: 'approved' });
        const began = performance.now();
        await here.sees('user:kim', true);
        await until(async () => CLEAR.test(await said(session)));
        t.comment(`in effect everywhere after ${Math.round(performance.now() - began)} ms`);
        const [view] = await here.list('user:kim');
        const minutes =
          (Date.parse(String(view?.['ends_at'])) - Date.parse(String(view?.['decided_at']))) / 60_000;
        t.equal(minutes, 9);
        const reply = await here.ask('user:kim');
        t.match(reply.text, CLEAR);
        t.match(await shop.records(reply.requestId), [
          { decision: 'allow', detail: `{"approvals":["${id}"]}` },
          {},
        ]);
        const records = await there.rest.test.records(decided.requestId);
        t.match(records, [
          { action: 'approve', kind: 'decision', decision: 'allow', subject: 'user:lee' },
          { outcome: 'ok' },
        ]);
        t.match(JSON.parse(String(records[0]?.detail)), { approval: id, chain: ['user:kim'] });
        const agent = await here.ask('agent:bot', {}, ['user:kim', 'agent:bot']);
        t.match(agent.json(), { code: 'E0535' }, 'another chain has not been approved');
        for (const again of [{ decision: 'approve', minutes: 30 }, { decision: 'decline' }])
          t.match(
            (await here.decide('user:pat', id, again)).json(),
            { status: 409, code: 'E4090' },
            'a decision counts once',
          );
        t.match((await here.decide('user:pat', id, { decision: 'revoke' })).json(), { state: 'revoked' });
        const revoked = performance.now();
        await here.sees('user:kim', false);
        await until(async () => !CLEAR.test(await said(session)));
        t.comment(`ended everywhere after ${Math.round(performance.now() - revoked)} ms`);
        t.match((await there.decide('user:pat', id, { decision: 'revoke' })).json(), { code: 'E4090' });
        t.match(
          (await there.decide('user:lee', id, { decision: 'approve' })).json(),
          { code: 'E4090' },
          'no second time',
        );
      },
    );

    await t.test('of two approvers at once, one decides', async (t) => {
      for (let i = 0; i < 5; i++) {
        const id = await here.request('user:kim', `race ${i}`);
        const replies = await Promise.all([
          here.decide('user:lee', id, { decision: 'approve', minutes: 3 }),
          there.decide('user:pat', id, { decision: 'decline' }),
          there.decide('user:pat', id, { decision: 'approve', minutes: 1 }),
        ]);
        const taken = replies.filter(({ status }) => status === 200);
        t.equal(taken.length, 1, replies.map(({ status }) => status).join(' '));
        const view = (await there.list('user:kim')).find((v) => v['id'] === id);
        t.equal(view?.['state'], taken[0]?.json()['state']);
        await revokeAll(here);
      }
    });

    await t.test('limited to purpose and task', async (t) => {
      const stated = { 'osl-purpose': 'audit', 'osl-task': 'july' };
      const id = await here.request('user:kim', 'the audit of July', stated);
      t.match(await here.list('user:lee'), [{ purpose: 'audit', task: 'july' }]);
      t.match((await here.decide('user:lee', id, { decision: 'approve', for_task: true })).json(), {
        state: 'approved',
      });
      await here.sees('user:kim', true, stated);
      t.notMatch((await here.ask('user:kim')).text, CLEAR);
      t.notMatch((await here.ask('user:kim', { 'osl-purpose': 'audit', 'osl-task': 'june' })).text, CLEAR);
      t.notMatch((await here.ask('user:kim', { 'osl-task': 'july' })).text, CLEAR);
      await revokeAll(here);
      const plain = await here.request('user:kim', 'no task at all');
      const forTask = await here.decide('user:lee', plain, { decision: 'approve', for_task: true });
      t.match(forTask.json(), { code: 'E4090', detail: /no task/ });
      await revokeAll(here);
    });

    await t.test('it ends at its time', async (t) => {
      const id = await here.request('user:kim', 'just a moment');
      const at = Date.now();
      const decision = { by: 'user:lee', at, approved: true, forTask: false, endsAt: at + 3_000 };
      t.equal(await here.rest.test.service.approvalRequests.decide(id, decision), true);
      await here.sees('user:kim', true);
      await here.sees('user:kim', false);
      t.ok(Date.now() >= at + 3_000);
      await until(async () => (await there.list('user:lee')).every((view) => view['id'] !== id));
      t.match((await here.decide('user:pat', id, { decision: 'approve' })).json(), { status: 404 });
    });

    await t.test('a grant that changes needs a new approval', async (t) => {
      const id = await here.request('user:kim', 'invoice 17 is wrong');
      const waiting = await here.request('user:kim', 'invoice 18 too');
      await here.decide('user:lee', id, { decision: 'approve' });
      await here.sees('user:kim', true);
      writeFileSync(shop.policyFile, policy('id, name, email, tax_no'));
      await shop.open.reload();
      t.match((await here.ask('user:kim')).json(), { code: 'E0535' });
      const views = (await here.list('user:lee')).filter(
        (view) => view['id'] === id || view['id'] === waiting,
      );
      t.match(views, [{ grants: [{ changed: true }] }, { grants: [{ changed: true }] }]);
      t.equal(views.length, 2);
      t.match((await here.decide('user:lee', waiting, { decision: 'approve' })).json(), {
        code: 'E4090',
        detail: /policy has changed/,
      });
      writeFileSync(shop.policyFile, policy());
      await shop.open.reload();
      await here.sees('user:kim', true);
      await revokeAll(here);
    });

    if (line !== null)
      await t.test('no approval counts while the control database is away', async (t) => {
        const id = await here.request('user:kim', 'invoice 17 is wrong');
        await here.decide('user:lee', id, { decision: 'approve' });
        await there.sees('user:kim', true);
        await line.shut();
        await there.sees('user:kim', false);
        const away = await there.send('user:lee', '/osl/approvals', null);
        t.match(away.json(), { status: 503, code: 'E5036' });
        t.match((await here.ask('user:kim')).text, CLEAR, 'the other gateway has it');
        await line.open();
        await there.sees('user:kim', true);
        await line.close();
      });

    await t.test('the log is whole', async (t) => {
      for (const { rest } of gateways) t.match(await rest.test.verdict(), { integrity: 'intact' });
    });
  });
