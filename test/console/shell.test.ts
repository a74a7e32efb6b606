import { request } from 'node:http';
import { test } from 'tap';
import { AuditUnavailable } from '../../audit/index.js';
import type { Service } from '../../src/service/service.js';
import { sealedParts, sealing } from '../support/sealed-parts.js';
import { watchedLog } from '../support/watched-log.js';
import { eventually, freshAddress } from '../surfaces/rest/fixture.js';
import { accessible, SKIP, startBrowser, Visit } from './support/browser.js';
import { consoleOptions, startGateway } from './support/gateway.js';

const HEADERS = {
  'content-security-policy':
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types default",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
};

test('the files of the console, and nothing beside them', async (t) => {
  const { rest } = await startGateway(t);
  const page = await rest.send('/console/');
  t.match(page, { status: 200, headers: { ...HEADERS, 'cache-control': 'no-cache' } });
  t.match(page.text, /<script type="module"[^>]* src="\/console\/assets\/[\w-]+\.js"/);
  t.notMatch(page.text, /<script(?![^>]* src=)|style=|onload=/, 'nothing stands in the page itself');
  t.match(await rest.send('/console'), { status: 308, headers: { location: '/console/' } });

  const script = /src="(\/console\/assets\/[^"]+)"/.exec(page.text)?.[1] ?? '';
  const asset = await rest.send(script);
  t.match(asset, {
    status: 200,
    headers: {
      ...HEADERS,
      'cache-control': 'public, max-age=31536000, immutable',
      'content-type': /javascript/,
    },
  });
  const head = await rest.send(script, { method: 'HEAD' });
  t.match(head, { status: 200, headers: { 'content-length': `${asset.bytes.length}` } });
  const etag = String(asset.headers['etag']);
  t.match(await rest.send(script, { headers: { 'if-none-match': etag } }), { status: 304 });
  const small = await rest.send(script, { headers: { 'accept-encoding': 'gzip' } });
  t.equal(small.headers['content-encoding'], 'gzip');
  t.ok(small.bytes.length < asset.bytes.length / 2);

  for (const path of [
    '/console/nothing',
    '/console/index.html/',
    '/console/../package.json',
    '/console/..%2fpackage.json',
    '/console/assets/..%2f..%2f..%2fpackage.json',
    '/console/assets/%2e%2e/index.html',
    '/console/console.stamp',
    '/console//etc/passwd',
    '/consoles',
  ]) {
    const reply = await rest.send(path, { from: freshAddress() });
    t.match(reply.json(), { status: 404, code: 'E4040' }, path);
  }
  t.match(await rest.send('/console/', { method: 'POST', from: freshAddress() }), { status: 405 });
});

test('the bare address leads a browser to the console, and tells programs where it is', async (t) => {
  const { rest } = await startGateway(t);
  const get = (accept: string | null, path = '/') =>
    rest.send(path, { from: freshAddress(), headers: accept === null ? {} : { accept } });
  const cases: readonly (readonly [accept: string | null, status: number])[] = [
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 302],
    ['application/json, text/html;q=0.1', 302],
    ['application/json', 404],
    ['*/*', 404],
    ['text/htmlx', 404],
    [null, 404],
  ];
  for (const [accept, status] of cases) {
    const reply = await get(accept);
    t.match(reply, { status, headers: { vary: /Accept/ } }, `${accept}`);
    if (status === 302) t.match(reply, { headers: { location: '/console/' }, text: '' });
    else
      t.match(reply.json(), {
        code: 'E4040',
        detail: 'there is nothing at this path',
        hint: 'the console is at /console/, what programs may ask is in /openapi.json',
      });
  }
  const led = await get('text/html', '/?next=//evil.example/%0d%0aX-Evil:1');
  t.match(led, { status: 302, headers: { location: '/console/' } }, 'nothing of the request is in it');
  t.notMatch(JSON.stringify(led.headers) + led.text, /evil/i);
  t.notMatch((await get(null, '/?<script>')).text, /script/);
  t.equal((await rest.send('/', { method: 'POST', from: freshAddress() })).status, 404);
});

test('without the setting there is none', async (t) => {
  const { rest } = await startGateway(t, { console: null });
  for (const path of ['/console', '/console/', '/console/settings.json', '/console/demo-token'])
    t.equal((await rest.send(path, { from: freshAddress() })).status, 404, path);
  const bare = await rest.send('/', { from: freshAddress(), headers: { accept: 'text/html' } });
  t.match(bare.json(), { code: 'E4040', hint: 'what programs may ask is in /openapi.json' });
});

test('the demo’s sign-in is for pages of this server on this machine, and for the demo alone', async (t) => {
  let failure: AuditUnavailable | null = null;
  const serve = (s: Service): Service =>
    sealing(s, {
      audit: watchedLog(
        sealedParts(s).audit,
        () => undefined,
        () => failure,
      ),
    });
  const { rest, origin } = await startGateway(t, { serve });
  const own = { host: `127.0.0.1:${rest.port}`, origin, 'content-type': 'application/json' };
  const ask = (headers: Record<string, string>, chain: unknown = ['user:ann']) =>
    post(rest.port, headers, JSON.stringify({ chain }));
  await t.test('a token leaves once its decision is on record, as any answer does', async (t) => {
    const recordsOf = async () => (await rest.test.records()).filter((r) => r.action === 'demo_token');

    t.equal(await ask(own, ['user:root']), 200);
    await eventually(async () => (await recordsOf()).length > 1);
    const [decision, outcome, ...more] = await recordsOf();
    const who = { surface: 'rest', subject: 'user:root', chain: ['user:root'] };
    t.match(decision, { kind: 'decision', decision: 'allow', ...who });
    t.match(outcome, { kind: 'outcome', outcome: 'ok', request_id: decision?.request_id, ...who });
    t.match(
      outcome?.detail,
      /^\{"token_id":"[^"]+","admin":true\}$/,
      'that it is an admin’s, and which token it is',
    );
    t.strictSame(more, []);

    t.equal(await ask(own, ['user:nobody']), 400);
    t.equal(await post(rest.port, { ...own, origin: 'https://evil.example' }, '{}'), 404);
    const refused = (await recordsOf()).slice(2);
    t.match(refused, [
      { kind: 'decision', decision: 'error', code: 'E0511', subject: null },
      { kind: 'decision', decision: 'error', code: 'E4040', subject: null },
    ]);
    t.equal(refused.length, 2);

    failure = new AuditUnavailable('disk', 'the disk is full');
    t.equal(await ask(own, ['user:root']), 503, 'what cannot be recorded is not given away');
    failure = null;
  });

  t.equal(await ask(own), 200);
  t.equal(await ask({ ...own, 'sec-fetch-site': 'same-origin' }), 200);
  const localhost = `localhost:${rest.port}`;
  t.equal(await ask({ ...own, host: localhost, origin: `http://${localhost}` }), 200);

  const refused: readonly (readonly [string, Record<string, string>])[] = [
    ['a page of another origin', { ...own, origin: 'https://evil.example' }],
    ['another port of this machine', { ...own, origin: 'http://127.0.0.1:1' }],
    ['a sandboxed page', { ...own, origin: 'null' }],
    [
      'a name that was rebound to this machine',
      { ...own, host: `evil.example:${rest.port}`, origin: `http://evil.example:${rest.port}` },
    ],
    ['a browser that says so', { ...own, 'sec-fetch-site': 'cross-site' }],
    ['by way of a proxy', { ...own, 'x-forwarded-for': '198.51.100.7' }],
    ['no origin', { host: own.host, 'content-type': own['content-type'] }],
  ];
  for (const [what, headers] of refused) t.equal(await ask(headers), 404, what);
  t.equal(await ask({ ...own, 'content-type': 'text/plain' }), 400, 'a form or a plain text');
  t.equal(await ask(own, ['user:root', 'user:ann']), 400, 'who is none of the demo’s callers');
  t.equal(await ask(own, 'user:ann'), 400);

  const other = await startGateway(t, { console: consoleOptions() });
  const there = { ...own, host: `127.0.0.1:${other.rest.port}`, origin: other.origin };
  t.equal(await post(other.rest.port, there, '{"chain":["user:ann"]}'), 404, 'on a server that is no demo');
});

/** The status that a POST gets, with a Host of its own. */
function post(port: number, headers: Record<string, string>, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path: '/console/demo-token', method: 'POST', headers };
    const sent = request(options, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

test('signing in, looking, and signing out', { skip: SKIP }, async (t) => {
  const { rest, origin } = await startGateway(t);
  const browser = await startBrowser(t);
  const visit = await Visit.start(browser, origin);
  const { page } = visit;
  await page.goto(`${origin}/console/`);

  await t.test('as one of the demo', async (t) => {
    await page.getByRole('heading', { name: 'OSL Gateway' }).waitFor();
    await accessible(t, page, 'the sign-in');
    await visit.click('button', /^user:ann/);
    await page.getByRole('navigation', { name: 'Screens' }).waitFor();
    t.equal(visit.clicks(), 1, 'one click');
    t.equal(await page.evaluate('document.activeElement.id'), 'main', 'the keyboard is at the screen');
    await accessible(t, page, 'the frame');
    t.match(await page.title(), /Ask · OSL Gateway/);
    visit.clean(t);
  });

  await t.test('a reload keeps who asks; another tab does not know', async () => {
    await page.reload();
    await page.getByRole('button', { name: /Signed in as user:ann/ }).waitFor();
    const other = await visit.context.newPage();
    await other.goto(`${origin}/console/`);
    await other.getByRole('heading', { name: 'Sign in to the demo as' }).waitFor();
    await other.close();
  });

  await t.test('the keyboard reaches the screen past the header', async (t) => {
    await page.keyboard.press('Tab');
    t.match(await page.evaluate('document.activeElement.textContent'), /Skip to the screen/);
    await page.keyboard.press('Enter');
    t.equal(await page.evaluate('document.activeElement.id'), 'main');
  });

  await t.test('signing out forgets the token', async (t) => {
    await visit.click('button', 'Sign out');
    await page.getByRole('heading', { name: 'Sign in to the demo as' }).waitFor();
    t.equal(await page.evaluate('JSON.stringify(sessionStorage)'), '{}');
    visit.clean(t);
  });

  await t.test('a token that is pasted; one that is none is told of', async (t) => {
    const box = page.getByRole('textbox', { name: 'Actor token' });
    await box.fill('nonsense');
    await visit.click('button', 'Sign in');
    t.match(await page.getByRole('alert').textContent(), /no actor token/);
    await box.fill(await rest.test.token('user:ada'));
    await visit.click('button', 'Sign in');
    await page.getByRole('button', { name: /Signed in as user:ada/ }).waitFor();
    t.equal(await page.evaluate('document.activeElement.id'), 'main');
    visit.clean(t);
  });

  await t.test('a screen whose files are gone asks to load the page again', async (t) => {
    const away = await Visit.start(browser, origin, {
      expects: /Failed to (?:load resource|fetch dynamically)|Unable to preload/,
    });
    for (const [kind, files] of [
      ['its stylesheet', /\/assets\/.*\.css$/],
      ['its script', /\/assets\/.*\.js$/],
    ] as const) {
      await away.page.goto(`${origin}/console/`);
      if (kind === 'its stylesheet') await away.click('button', /^user:ann/);
      await away.page.getByRole('textbox', { name: /Question/ }).waitFor();
      await away.page.route(files, (route) => route.abort());
      await away.page.evaluate("location.hash = '#/metrics'");
      await away.page.getByText('The console has to be loaded again').waitFor();
      t.notMatch(await away.page.getByRole('main').textContent(), /preload|import/i, kind);
      await away.page.unroute(files);
      await away.click('button', 'Load the page again');
      await away.page.getByText('The console has to be loaded again').waitFor({ state: 'detached' });
      await away.page.evaluate("location.hash = '#/ask'");
    }
    away.clean(t);
    await away.close();
  });
  await visit.close();
});
