import { type ChildProcess, spawn } from 'node:child_process';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import t from 'tap';
import { SHOP_POLICY } from '../../support/shop.js';
import { type RestFixture, startRest } from '../../surfaces/rest/fixture.js';
import { BIN, type Finished, osl, ROOT, shell } from './support.js';

/** `osl query --watch` with a real server, and between them somebody who disturbs. */

t.setTimeout(120_000);
const rest = await startRest();
t.teardown(() => rest.close());

/** What is done with the requests that come, in their order: afterwards each passes. */
type Deed = 'pass' | 'break' | 'spoil token' | 'hold' | 'until 429';

interface Between {
  readonly url: string;
  /** Resolves once a request is held; then its end resolves. */
  readonly held: Promise<{ readonly ended: Promise<void> }>;
  readonly tokens: string[];
  /** Why approvals are asked for; null without a request for one. */
  readonly reasons: (string | null)[];
}

/** A proxy in front of `to` that disturbs. */
async function between(
  t: { teardown(work: () => void): void },
  to: RestFixture,
  deeds: readonly Deed[],
): Promise<Between> {
  const left = [...deeds];
  const tokens: string[] = [];
  const reasons: (string | null)[] = [];
  let hold: (held: { readonly ended: Promise<void> }) => void = () => undefined;
  const held = new Promise<{ readonly ended: Promise<void> }>((resolve) => {
    hold = resolve;
  });
  const server: Server = createServer((incoming, outgoing) => {
    const deed = left.shift() ?? 'pass';
    tokens.push(incoming.headers.authorization ?? '');
    const reason = incoming.headers['osl-approval-reason'];
    reasons.push(typeof reason === 'string' ? reason : null);
    if (deed === 'break') incoming.socket.destroy();
    else if (deed === 'hold')
      hold({ ended: new Promise((resolve) => incoming.socket.once('close', () => resolve())) });
    else {
      const headers = {
        ...incoming.headers,
        ...(deed === 'spoil token' && { authorization: 'Bearer x.y.z' }),
      };
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.once('end', () => pass(Buffer.concat(chunks)));
      const pass = (body: Buffer): void => {
        const passed = request(
          { port: to.port, path: incoming.url, method: incoming.method, headers },
          (reply) => {
            if (deed === 'until 429' && reply.statusCode !== 429) {
              reply.resume().once('end', () => pass(body));
              return;
            }
            outgoing.writeHead(reply.statusCode ?? 0, reply.headers);
            reply.pipe(outgoing);
          },
        );
        passed.end(body);
      };
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, held, tokens, reasons };
}

const minting = [
  '--data-dir',
  dirname(rest.test.auditDir),
  '--policy',
  rest.test.policyFile,
  '--subject',
  'user:ann',
];
const at = (url: string): readonly string[] => ['query', '--server', url, ...minting];
const HERE = at(`http://127.0.0.1:${rest.port}`);
const ONE = 'select count(*) as n from customer';

t.test('in a pipe answers follow each other, each with its time', async (t) => {
  const run = await osl([...HERE, '--watch', '1', '--times', '2', ONE]);
  t.match(run, { code: 0, stderr: '' });
  t.match(run.stdout, /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n n\n---\n 4\n\(1 row\)\n\n){2}$/);
  t.ok(run.ms >= 1_000, `${run.ms} ms`);
});

t.test('CSV has one header, JSON and NDJSON a line an answer', async (t) => {
  const twice = (...flags: string[]): Promise<Finished> =>
    osl([...HERE, '--watch', '1', '-n', '2', ...flags, 'select name, email from customer where id = 1']);
  const [csv, json, ndjson, markdown] = await Promise.all([
    twice('--format', 'csv'),
    twice('--json'),
    twice('--format', 'ndjson'),
    twice('--format', 'markdown'),
  ]);
  t.match(csv, {
    code: 0,
    stdout: 'name,email\r\nAda,[redacted]\r\nAda,[redacted]\r\n',
    stderr: 'masked: customer.email\n',
  });
  t.same(
    json.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).row_count),
    [1, 1],
  );
  t.equal(ndjson.stdout, '{"name":"Ada","email":"[redacted]"}\n'.repeat(2));
  t.match(markdown.stdout, /Z\n\n\| name \| email \|\n/);
});

t.test('--watch without a number asks what follows, and wrong flags are told of', async (t) => {
  t.match(await osl([...HERE, '-n', '1', '--watch', ONE]), { code: 0, stdout: / 4\n/ });
  t.match(await osl([...HERE, '-n', '1', '--chart', ONE]), { code: 2, stderr: /--times goes with --watch/ });
  t.match(await osl([...HERE, '--watch', '0', ONE]), { code: 2, stderr: /whole seconds from 1/ });
  t.match(await osl([...HERE, '--watch', 'x', ONE]), {
    code: 2,
    stderr: /whole seconds from 1 to 86400, not `x`/,
  });
  t.match(await osl([...HERE, '--json', '--format', 'csv', ONE]), {
    code: 2,
    stderr: /'--json' cannot be used with option '--format/,
  });
  t.match(await osl(['index', '--status', '--watch']), {
    code: 2,
    stderr: /'--status' cannot be used with option '--watch'/,
  });
  for (const format of ['arrow', 'parquet'])
    t.match(await osl([...HERE, '--watch', '1', '--format', format, ONE]), {
      code: 2,
      stderr: /is one file/,
    });
  t.match(await osl([...HERE, '--watch', '1', 'select nothing from customer']), {
    code: 1,
    stderr: /^error E0512/,
  });
  t.match(await osl([...at('http://127.0.0.1:1'), '--watch', '1', ONE]), {
    code: 3,
    stderr: /nothing listens there/,
  });
});

t.test('an approval is asked for with each question', async (t) => {
  const { url, reasons } = await between(t, rest, ['pass', 'pass']);
  t.match(await osl([...at(url), '--watch', '1', '-n', '2', '--approval-reason', 'audit', ONE]), { code: 0 });
  t.strictSame(reasons, ['audit', 'audit']);
});

t.test('a terminal is drawn anew', async (t) => {
  const run = await shell(`script -qec "npx osl ${HERE.join(' ')} --watch 1 -n 2 '${ONE}'" /dev/null`);
  t.equal(run.code, 0, run.stdout);
  t.match(
    run.stdout,
    /^(\u001b\[H\u001b\[2J\S+Z, every 1 s; Ctrl-C ends it\r\n n\r\n---\r\n 4\r\n\(1 row\)\r\n){2}$/,
  );
});

t.test('a token that is not taken any more is minted anew; one that was given ends it', async (t) => {
  const { url, tokens } = await between(t, rest, ['pass', 'spoil token', 'pass', 'pass']);
  t.match(await osl([...at(url), '--watch', '1', '-n', '3', ONE]), { code: 0, stderr: '' });
  t.equal(tokens.length, 4, 'one more than answers');
  t.equal(new Set(tokens).size, 2);
  const given = await between(t, rest, ['pass', 'spoil token']);
  const token = await rest.test.token('user:ann');
  const run = await osl(['query', '--server', given.url, '--token', token, '--watch', '1', ONE]);
  t.match(run, { code: 1, stderr: /^error E3001/ });
});

t.test('a server that was away is asked again; one that says when, then', async (t) => {
  const { url } = await between(t, rest, ['pass', 'break', 'pass']);
  const away = await osl([...at(url), '--watch', '1', '-n', '2', ONE]);
  t.match(away, { code: 0, stderr: /^error: no answer from \S+: .*: asking again in 2 s\n$/ });
  t.equal(away.stdout.match(/\(1 row\)/g)?.length, 2);

  const slow = await startRest({ policy: SHOP_POLICY.replace('query: 100000', 'query: 5') });
  t.teardown(() => slow.close());
  const throttled = await between(t, slow, ['pass', 'until 429']);
  const token = await slow.test.token('user:ann');
  const busy = await osl([
    'query',
    '--server',
    throttled.url,
    '--token',
    token,
    '--watch',
    '1',
    '-n',
    '2',
    ONE,
  ]);
  t.match(busy, { code: 0, stderr: /^error E\w+: .*: asking again in 1 s\n$/ });
  t.equal(busy.stdout.match(/\(1 row\)/g)?.length, 2);
});

function started(args: readonly string[]): {
  readonly child: ChildProcess;
  readonly ended: Promise<Finished>;
} {
  const child = spawn(process.execPath, [...process.execArgv, BIN, ...args], { cwd: ROOT, stdio: 'pipe' });
  const from = performance.now();
  let [stdout, stderr] = ['', ''];
  child.stdout?.on('data', (text: Buffer) => {
    stdout += text;
  });
  child.stderr?.on('data', (text: Buffer) => {
    stderr += text;
  });
  const ended = new Promise<Finished>((resolve) => {
    child.once('close', (code) => resolve({ code, stdout, stderr, ms: performance.now() - from }));
  });
  return { child, ended };
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  t.test(`${signal} ends it in order, between questions and during one`, async (t) => {
    const waiting = started([...HERE, '--watch', '3600', ONE]);
    await new Promise((resolve) => waiting.child.stdout?.once('data', resolve));
    waiting.child.kill(signal);
    t.match(await waiting.ended, { code: 0, stderr: '', stdout: /\(1 row\)\n\n$/ });

    const { url, held } = await between(t, rest, ['pass', 'hold']);
    const asking = started([...at(url), '--watch', '1', ONE]);
    const { ended } = await held;
    asking.child.kill(signal);
    t.match(await asking.ended, { code: 0, stderr: '' });
    await ended;
  });
}
