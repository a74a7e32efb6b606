import { writeFileSync } from 'node:fs';
import t from 'tap';
import { mintToken, tokenIdIn } from '../../../policy/index.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { AGENT, CLIENT, RESOURCE } from '../../identity/provider.js';
import { rulesOf, SIGNED, startShopIdentity } from '../../identity/shop-identity.js';
import { signIn } from '../../identity/signed-in.js';
import { sealWithSecret } from '../../identity/signers.js';
import { connectPg } from '../../support/pg-client.js';
import { eventually, freshAddress, type Reply, startRest } from '../rest/fixture.js';

/** `POST /oauth/token` before a real service, with the tokens of a real provider. */

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ID = 'urn:ietf:params:oauth:token-type:id_token';
const ACCESS = 'urn:ietf:params:oauth:token-type:access_token';
const JWT = 'urn:ietf:params:oauth:token-type:jwt';

const identity = await startShopIdentity();
const { provider, key } = identity;
const rest = await startRest({
  policy: identity.policy,
  settings: { issuersFile: identity.issuersFile, localTokens: true },
});
t.teardown(async () => {
  await rest.close();
  await identity.close();
});

type Form = Readonly<Record<string, string>>;

/** Each from an address of its own: what is refused counts by it. */
function post(form: Form | string): Promise<Reply> {
  return rest.send('/oauth/token', {
    method: 'POST',
    from: freshAddress(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: typeof form === 'string' ? form : new URLSearchParams(form).toString(),
  });
}

const exchangeForm = (token: string, type: string, more: Form = {}): Form => ({
  grant_type: GRANT,
  subject_token: token,
  subject_token_type: type,
  ...more,
});

async function exchanged(token: string, type: string, more: Form = {}): Promise<string> {
  const reply = await post(exchangeForm(token, type, more));
  const body = reply.json();
  if (reply.status !== 200) throw new Error(reply.text);
  return String(body['access_token']);
}

async function ask(token: string, osql: string): Promise<Reply> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  return rest.send('/osl/query', { method: 'POST', headers, body: { osql } });
}

const NAMES = 'select name from osl.entities.customer order by name';

async function names(token: string): Promise<unknown> {
  const reply = await ask(token, NAMES);
  const body = reply.json();
  return reply.status === 200 && Array.isArray(body['rows'])
    ? body['rows'].map((row: { name: string }) => row.name)
    : body['code'];
}

function payloadOf(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<
    string,
    unknown
  >;
}

const now = (): number => Math.floor(Date.now() / 1_000);

/** Claims of an access token that is good for so long. */
const claimsFor = (seconds: number): Record<string, unknown> => ({
  iss: SIGNED,
  aud: RESOURCE,
  sub: 'sam',
  groups: ['shop-analysts'],
  iat: now(),
  exp: now() + seconds,
});

/** An access token such as an issuer signs, changed. */
function access(changes: Readonly<Record<string, unknown>> = {}, header: object = { typ: 'at+jwt' }): string {
  return key.seal({ ...header }, { ...claimsFor(600), ...changes });
}

t.test('an ID token of somebody who signed in becomes an actor token: rows by the claims', async (t) => {
  const erin = await signIn(provider.issuer, 'erin');
  const reply = await post(exchangeForm(erin.idToken, ID));
  t.match(reply.json(), { token_type: 'Bearer', issued_token_type: JWT, expires_in: 300 });
  t.equal(reply.headers['cache-control'], 'no-store');
  const token = String(reply.json()['access_token']);
  t.match(payloadOf(token), { sub: 'user:erin', chain: ['user:erin'], acl_roles: ['regional'], roles: [] });
  for (let i = 0; i < 4; i++) t.same(await names(token), ['Ada', 'Bo'], 'her region, also when asked again');
  const uma = await exchanged((await signIn(provider.issuer, 'uma')).accessToken, ACCESS);
  for (let i = 0; i < 4; i++) t.same(await names(uma), ['Cy', 'Di'], 'an access token likewise');
  t.same(await names(token), ['Ada', 'Bo'], 'and no route of one serves the other');

  await t.test('it is on record: who, by which rule of which issuer, and which token was made', async (t) => {
    const records = await rest.test.records(reply.requestId);
    t.match(records, [
      { kind: 'decision', action: 'exchange', subject: 'user:erin', decision: 'allow' },
      { kind: 'outcome', action: 'exchange', subject: 'user:erin', outcome: 'ok' },
    ]);
    t.same(JSON.parse(String(records[1]?.detail)), {
      token_id: payloadOf(token)['jti'],
      admin: false,
      rule: 'people',
      issuer: provider.issuer,
    });
  });

  await t.test('the wire takes the token as a password', async (t) => {
    const frontend = createPgFrontend(rest.test.service, {});
    const { port } = await frontend.listen(0, '127.0.0.1');
    t.teardown(() => frontend.stop());
    const client = await connectPg({ port, user: 'user:erin', password: token });
    for (let i = 0; i < 3; i++) t.equal((await client.query(NAMES)).rows.length, 2);
    await client.end();
    const direct = await connectPg({
      port,
      user: `agent:${AGENT.id}`,
      password: await provider.agentToken(),
    });
    t.equal((await direct.query(NAMES)).rows.length, 4, 'and an access token, where the rule lets it');
    await direct.end();
  });
});

t.test('a role that denies comes along, and admin roles are claimed where they are asked for', async (t) => {
  const dora = await exchanged((await signIn(provider.issuer, 'dora')).idToken, ID);
  t.same(payloadOf(dora)['acl_roles'], ['analyst', 'no_addresses']);
  t.match((await ask(dora, 'select email from osl.entities.customer')).json(), { code: 'E2101' });
  const { idToken } = await signIn(provider.issuer, 'rita');
  const full = async (token: string): Promise<number> =>
    (await rest.send('/osl/schema', { headers: { authorization: `Bearer ${token}` } })).status;
  t.equal(await full(await exchanged(idToken, ID)), 403);
  const admin = await post(exchangeForm(idToken, ID, { scope: 'admin' }));
  t.equal(admin.json()['scope'], 'admin');
  t.equal(await full(String(admin.json()['access_token'])), 200);
});

t.test("a user's token and an agent's become a delegated one, which sees no more than either", async (t) => {
  const erin = await signIn(provider.issuer, 'erin');
  const actor = { actor_token: await provider.agentToken(), actor_token_type: ACCESS };
  const token = await exchanged(erin.accessToken, ACCESS, actor);
  t.match(payloadOf(token), { sub: 'agent:bot', chain: ['user:erin', 'agent:bot'] });
  t.same(await names(token), ['Ada', 'Bo'], 'the agent alone would see all four');
  t.same(await names(await provider.agentToken()), ['Ada', 'Bo', 'Cy', 'Di']);

  const dora = await signIn(provider.issuer, 'dora');
  const careful = await exchanged(dora.idToken, ID, actor);
  t.same(await names(careful), ['Ada', 'Bo', 'Cy', 'Di']);
  t.match(
    (await ask(careful, 'select email from osl.entities.customer')).json(),
    { code: 'E2101' },
    'what is denied to the user is denied to who acts for her',
  );

  const own = await rest.test.token('agent:bot', { aclRoles: ['regional'] });
  const narrow = await exchanged(erin.idToken, ID, { actor_token: own, actor_token_type: JWT });
  t.same(await names(narrow), ['Ada', 'Bo'], 'an actor token of the agent does too');
  const analyst = await rest.test.token('agent:bot', { aclRoles: ['analyst'] });
  const none = await exchanged(erin.idToken, ID, { actor_token: analyst, actor_token_type: JWT });
  t.same(await names(none), 'E2102', 'roles that only one of them brings count for nothing');
  const ends = Number(payloadOf(narrow)['exp']);
  t.ok(ends <= Number(payloadOf(own)['exp']), 'and it ends with what it was made of');
  t.match(
    (await post(exchangeForm(narrow, JWT, actor))).json(),
    { error: 'invalid_request' },
    'nobody twice',
  );

  const mayAct = access({ may_act: { sub: 'other' } });
  t.match((await post(exchangeForm(mayAct, ACCESS, actor))).json(), {
    error: 'invalid_request',
    code: 'E3001',
    error_description: /may_act/,
  });
  const may = access({ may_act: { sub: AGENT.id } });
  t.equal((await post(exchangeForm(may, ACCESS, actor))).status, 200);
});

t.test('a token that is revoked becomes no other, and takes with it what it has become', async (t) => {
  const { revocations } = rest.test.service;
  const agent = await provider.agentToken();
  const erin = await signIn(provider.issuer, 'erin');
  const actor = { actor_token: agent, actor_token_type: ACCESS };
  const own = await exchanged(erin.accessToken, ACCESS);
  const delegated = await exchanged(own, JWT, actor);
  const direct = access({ jti: 'the only one' });
  const nameless = access({ exp: now() + 500 });
  for (const token of [own, delegated, direct, nameless, agent]) t.ok(Array.isArray(await names(token)));

  await revocations.revoke({ kind: 'token', name: tokenIdIn(erin.accessToken) });
  t.match((await post(exchangeForm(erin.accessToken, ACCESS))).json(), {
    code: 'E3001',
    error_description: /it was revoked/,
  });
  t.equal(await names(own), 'E3001', 'what was made of it before');
  t.equal(await names(delegated), 'E3001', 'and what was made of that');
  t.same(await names(agent), ['Ada', 'Bo', 'Cy', 'Di'], 'who acted for her goes on');
  t.same(await names(direct), ['Ada', 'Bo', 'Cy', 'Di']);

  await revocations.revoke({ kind: 'token', name: 'the only one' });
  await revocations.revoke({ kind: 'token', name: tokenIdIn(nameless) });
  rest.test.service.verifier.forget();
  t.equal(await names(direct), 'E3001', 'one that is good as it is, also when it is verified anew');
  t.equal(await names(nameless), 'E3001', 'one without an id, by its hash');

  const older = access({ sub: 'tom', iat: now() - 60 });
  await revocations.revoke({ kind: 'subject', name: 'user:tom' });
  t.match((await post(exchangeForm(older, ACCESS))).json(), { code: 'E3001' }, 'all of a subject likewise');
});

t.test('what is not taken', async (t) => {
  const erin = await signIn(provider.issuer, 'erin');
  const nobody = await signIn(provider.issuer, 'nobody');
  const opaque = await signIn(provider.issuer, 'erin', null);
  const refused: readonly (readonly [string, string, string, RegExp])[] = [
    ['an ID token given as an access token', erin.idToken, ACCESS, /kind|aud/],
    ['an access token given as an ID token', erin.accessToken, ID, /kind/],
    ['an opaque access token', opaque.accessToken, ACCESS, /not a JWT/],
    ['claims that no rule takes', nobody.idToken, ID, /no rule/],
    ['another audience', access({ aud: 'https://other.example' }), ACCESS, /aud/],
    ['no audience', access({ aud: undefined }), ACCESS, /aud/],
    ['another issuer', access({ iss: 'https://evil.example' }), ACCESS, /iss/],
    ["a key of this issuer for another one's name", access({ iss: provider.issuer }), ACCESS, /no key/],
    ['expired', access({ iat: now() - 900, exp: now() - 60 }), ACCESS, /expired/],
    ['not yet', access({ nbf: now() + 120 }), ACCESS, /not valid yet/],
    ['longer than its issuer may', access({ exp: now() + 7_200 }), ACCESS, /lives longer/],
    ['a public key taken for a secret', secretly(), ACCESS, /key of its issuer/],
    ['alg none', access({}, { typ: 'at+jwt', alg: 'none' }), ACCESS, /alg/],
    ['crit', access({}, { typ: 'at+jwt', crit: ['exp'] }), ACCESS, /parameter/],
    ['another type', access({}, { typ: 'logout+jwt' }), ACCESS, /typ/],
    ['marks of an ID token', access({ nonce: 'n' }, { typ: 'JWT' }), ACCESS, /kind/],
    ['an ID token of another client', access({ aud: 'other-client' }, { typ: 'JWT' }), ID, /aud/],
    [
      'an ID token for several, made for another',
      access({ aud: [CLIENT, 'x'], azp: 'x' }, { typ: 'JWT' }),
      ID,
      /azp/,
    ],
    [
      'an address that nobody verified',
      access({ kind: 'mail', groups: [], email: 'root@x' }),
      ACCESS,
      /no subject/,
    ],
    [
      'a chain in the claims of an identity token',
      access({ chain: ['user:root'] }, { typ: 'service-actor+jwt' }),
      ACCESS,
      /./,
    ],
    ['nonsense', 'nonsense', ACCESS, /not a JWT/],
    ['too large', `${access()}${'A'.repeat(9_000)}`, ACCESS, /larger/],
  ];
  for (const [what, token, type, why] of refused) {
    const reply = await post(exchangeForm(token, type));
    t.match(reply.json(), { error: 'invalid_request', code: 'E3001', error_description: why }, what);
    t.equal(reply.status, 400, what);
    t.notMatch(reply.text, /root|evil|other\.example/, 'nothing of the token is told');
  }
  t.match(
    (
      await post(
        exchangeForm(access({ kind: 'mail', groups: [], email: 'a@x', email_verified: true }), ACCESS),
      )
    ).status,
    200,
    'the control: a verified address',
  );
  const last = await post(exchangeForm('x.y.z', ACCESS));
  t.same(await rest.trail(last.requestId), [
    { kind: 'decision', action: 'exchange', subject: null, decision: 'deny', code: 'E3001' },
  ]);
});

t.test('requests that are none have the errors of OAuth', async (t) => {
  const good = access();
  const refused: readonly (readonly [string, Form | string, string])[] = [
    ['another grant', { grant_type: 'password' }, 'unsupported_grant_type'],
    ['no grant', {}, 'unsupported_grant_type'],
    ['no token', { grant_type: GRANT }, 'invalid_request'],
    ['no type', { grant_type: GRANT, subject_token: good }, 'invalid_request'],
    [
      'a type that is none here',
      exchangeForm(good, 'urn:ietf:params:oauth:token-type:saml2'),
      'invalid_request',
    ],
    ['an actor without a type', exchangeForm(good, ACCESS, { actor_token: good }), 'invalid_request'],
    ['a scope that is none', exchangeForm(good, ACCESS, { scope: 'all' }), 'invalid_scope'],
    [
      'another resource',
      exchangeForm(good, ACCESS, { resource: 'https://other.example/' }),
      'invalid_target',
    ],
    ['a parameter twice', `grant_type=${GRANT}&grant_type=${GRANT}`, 'invalid_request'],
  ];
  for (const [what, form, error] of refused) {
    const reply = await post(form);
    t.equal(reply.json()['error'], error, what);
    t.equal(reply.status, 400, what);
  }
  t.equal((await post(exchangeForm(good, ACCESS, { resource: RESOURCE }))).status, 200);
  const json = await rest.send('/oauth/token', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: {},
  });
  t.match(json.json(), { error: 'invalid_request' });
  t.match((await rest.send('/oauth/token')).json(), { code: 'E4050' });
});

t.test(
  'an access token is good as it is only where its rule says so, and only for what it would become',
  async (t) => {
    const erin = await signIn(provider.issuer, 'erin');
    t.match((await ask(erin.accessToken, NAMES)).json(), {
      code: 'E3001',
      detail: /exchanged first/,
      hint: /^the file of OSL_ISSUERS says/,
    });
    t.match((await ask(erin.idToken, NAMES)).json(), { code: 'E3001' }, 'an ID token never');
    const direct = access({ groups: ['shop-regional'], region: 'us' });
    for (let i = 0; i < 4; i++) t.same(await names(direct), ['Cy', 'Di']);
    t.same(
      await names(access({ groups: ['shop-regional'], region: 'apac' })),
      [],
      'a value beyond what the rule has',
    );
    t.same(await names(access({ groups: ['shop-regional'], region: ['eu', 'us', 'apac'] })), [
      'Ada',
      'Bo',
      'Cy',
      'Di',
    ]);
    t.same(await names(access({ groups: ['shop-regional'] })), [], 'no claim, no attribute');
    t.same(await names(access({ aud: CLIENT, groups: ['shop-analysts'] })), 'E3001', 'bound to its audience');
  },
);

t.test('a claim that is a number is an attribute, of the type that rows are compared with', async (t) => {
  const numbered = identity.policy
    .replaceAll('columns: [id, name, email, region], rows: "region = attribute(\'region\')"', () => {
      return `columns: [id, name], rows: "id = attribute('region')"`;
    })
    .replaceAll('attributes: { region: eu }', 'attributes: { region: 1 }')
    .replaceAll('attributes: { region: us }', 'attributes: { region: [2, 3] }')
    .replaceAll('among: [eu, us]', 'among: [1, "2", 4]')
    .replaceAll(', rows: "region = attribute(\'region\')"', '');
  writeFileSync(rest.test.policyFile, numbered);
  await rest.test.open.reload();
  t.teardown(async () => {
    writeFileSync(rest.test.policyFile, identity.policy);
    await rest.test.open.reload();
  });
  const claiming = (region: unknown): string => access({ groups: ['shop-regional'], region });
  t.same(await names(claiming(2)), ['Bo']);
  t.same(await names(claiming('2')), ['Bo'], 'or the text of one');
  t.same(await names(claiming([1, 4])), ['Ada', 'Di']);
  t.same(await names(claiming(3)), [], 'which `among` bounds as any other');
  t.same(await names(claiming({ id: 1 })), [], 'no value is made of what is none');
  const wrong = await ask(claiming('eu'), NAMES);
  t.match(wrong.json(), { code: 'E3001', detail: /not of the type which policy compares it with/ });
  t.equal((await post(exchangeForm(claiming(true), ACCESS))).json()['code'], 'E3001');
  t.same(await names(await rest.test.token('user:eu', { aclRoles: ['regional'] })), ['Ada']);
  t.same(await names(await rest.test.token('user:us', { aclRoles: ['regional'] })), ['Bo', 'Cy']);
});

t.test('a subject that the policy names has no more than that', async (t) => {
  const named = (sub: string, changes: object): string => access({ sub, ...changes });
  t.same(await names(named('eu', { groups: ['shop-regional'], region: ['eu', 'us'] })), ['Ada', 'Bo']);
  t.same(await names(named('nil', { groups: ['shop-analysts'] })), 'E2102');
  t.match(
    (
      await ask(named('den', { groups: ['shop-analysts'] }), 'select email from osl.entities.customer')
    ).json(),
    { code: 'E2101' },
    'what is denied to her by name is denied, though no claim says so',
  );
});

t.test('nobody else signs what an exchange says', async (t) => {
  const { signing } = rest.test.open.keys;
  const erin = await exchanged((await signIn(provider.issuer, 'erin')).idToken, ID);
  const claims = payloadOf(erin);
  const forged = sealWithSecret(signing, { typ: 'service-actor+jwt' }, claims);
  t.same(await names(forged), 'E3001', "the gateway's other key is not good for its issuer's name");
  const renamed = sealWithSecret(signing, { typ: 'service-actor+jwt' }, { ...claims, iss: 'service' });
  t.same(await names(renamed), 'E2102', 'nor is the claim looked at in a token of another');
  const minted = await mintToken(
    { tenant: 'shop', chain: ['user:erin'], aclRoles: ['regional'] },
    { algorithm: 'HS256', secret: signing },
  );
  t.same(await names(minted), 'E2102', 'a subject of a rule is nobody without it');
});

t.test('a rule that is changed or removed ends the tokens that it made, open sessions too', async (t) => {
  const erin = await exchanged((await signIn(provider.issuer, 'erin')).idToken, ID);
  const direct = access();
  const frontend = createPgFrontend(rest.test.service, {});
  const { port } = await frontend.listen(0, '127.0.0.1');
  t.teardown(() => frontend.stop());
  const client = await connectPg({ port, user: 'user:erin', password: erin });
  for (let i = 0; i < 3; i++) t.equal((await client.query(NAMES)).rows.length, 2);
  t.same(await names(erin), ['Ada', 'Bo']);
  t.equal((await ask(direct, NAMES)).status, 200);
  const changed = identity.policy
    .replace('among: [eu, us]', 'among: [us]')
    .replace('direct: true', 'direct: false');
  writeFileSync(rest.test.policyFile, changed);
  await rest.test.open.reload();
  t.same(await names(erin), 'E2102');
  t.same(await names(direct), 'E3001');
  await t.rejects(client.query(NAMES), { code: '42501' });
  await client.end();
  writeFileSync(rest.test.policyFile, identity.policy);
  await rest.test.open.reload();
  t.same(await names(erin), ['Ada', 'Bo'], 'the same rule again is the same rule');
});

t.test('keys of the provider rotate, and it goes away: what was known stays good', async (t) => {
  // What the client kept open to the provider of before is closed when it ends.
  const again = (): ReturnType<typeof signIn> => signIn(provider.issuer, 'erin').catch(again);
  const before = await again();
  t.equal((await post(exchangeForm(before.idToken, ID))).status, 200);
  await provider.rotate('stays');
  const after = await again();
  await eventually(async () => (await post(exchangeForm(after.idToken, ID))).status === 200);
  t.equal((await post(exchangeForm(before.idToken, ID))).status, 200, 'both keys while they rotate');
  await provider.stop();
  t.equal((await post(exchangeForm(after.idToken, ID))).status, 200, 'stale on error');
  await provider.start();
  await provider.rotate('goes');
  const last = await again();
  await eventually(async () => (await post(exchangeForm(last.idToken, ID))).status === 200);
  t.match((await post(exchangeForm(before.idToken, ID))).json(), { code: 'E3001' }, 'a withdrawn key');
});

t.test('rules that cannot be are refused when the policy loads', async (t) => {
  const wrong: readonly (readonly [string, string, RegExp])[] = [
    ['subject: "user:{sub}"', 'subject: user', /P0121.*claim/],
    ['regional, analyst, no_addresses]', 'regional, analist]', /analist/],
    ['shop-careful: [no_addresses]', 'shop-careful: [auditor]', /P0121.*ceiling/],
    ['name: agents', 'name: people', /P0121.*twice/],
    ['{ claim: region, among: [eu, us] }', '{ among: [eu] }', /P0121/],
    ['{ claim: region, among: [eu, us] }', '7', /P0121.*is a number, and `order` compares it with text/],
  ];
  for (const [from, to, why] of wrong) {
    writeFileSync(rest.test.policyFile, identity.policy.replace(from, to));
    await t.rejects(rest.test.open.reload(), { message: why }, to);
  }
  writeFileSync(rest.test.policyFile, identity.policy);
  await rest.test.open.reload();
  t.match(rulesOf('x'), /exchange:/);
});

function secretly(): string {
  const pem = key.publicKey.export({ type: 'spki', format: 'pem' }).toString();
  return sealWithSecret(pem, { typ: 'at+jwt' }, claimsFor(60));
}
