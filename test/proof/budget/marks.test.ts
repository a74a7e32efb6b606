import { type ChildProcess, fork } from 'node:child_process';
import { readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { readRecords } from '../../../audit/index.js';
import { openService } from '../../../src/service/open.js';
import { settingsFrom } from '../../../src/service/settings.js';
import type { LogLine } from '../../support/service.js';

/** A gateway that is killed while it compiles says at its next start what it was compiling. */

interface Started {
  readonly port: number;
  readonly auditDir: string;
  readonly policyFile: string;
  readonly token: string;
}

/** The sizes of the marks in `dir`. */
const marks = (dir: string): readonly number[] =>
  readdirSync(dir).map((name) => statSync(join(dir, name), { throwIfNoEntry: false })?.size ?? 0);

const started = (child: ChildProcess): Promise<Started> =>
  new Promise((resolve, reject) => {
    child.once('message', (message) => resolve(message as Started)); // as `marking.ts` says it
    child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}`)));
  });

t.setTimeout(600_000);
t.test(
  'what was compiled when the process was killed is told, and recorded',
  { timeout: 120_000 },
  async (t) => {
    const child = fork(new URL('./marking.js', import.meta.url), { execArgv: [] });
    const { port, auditDir, policyFile, token } = await started(child);
    const [dataDir, dir] = [dirname(auditDir), dirname(policyFile)];
    t.teardown(() => rmSync(dir, { recursive: true, force: true }));
    const compiling = join(dataDir, 'compiling');
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
    const text = (i: number): string =>
      `select ${100 + i}, ${'id + 1 + 1 + 1, '.repeat(1_000)} name from customer`;
    const ask = (i: number): Promise<unknown> =>
      fetch(`http://127.0.0.1:${port}/osl/query`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ osql: text(i) }),
      }).catch(() => undefined);
    const asked = Array.from({ length: 20 }, (_, i) => ask(i));
    while (!marks(compiling).some((size) => size > 0)) await new Promise((r) => setTimeout(r, 1));
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
    await Promise.all(asked);
    const left = marks(compiling).filter((size) => size > 0).length;
    t.ok(left > 0, `${left} texts were being compiled`);

    const lines: LogLine[] = [];
    const line =
      (level: LogLine['level']) =>
      (message: string, fields: LogLine['fields'] = {}): void => {
        lines.push({ level, message, fields });
      };
    const log = { info: line('info'), warn: line('warn'), error: line('error') };
    const manifestFile = join(dir, 'manifest.yaml');
    const open = await openService(settingsFrom({}, dir, { manifestFile, policyFile, dataDir }), log);
    await open.close();
    const told = lines.filter((l) => l.message === 'the gateway ended while it compiled this question');
    t.equal(told.length, left, 'all are told of');
    t.match(told[0]?.fields, {
      request_id: /^[\da-f-]{36}$/,
      surface: 'rest',
      action: 'query',
      subject: 'user:ann',
      statement_hmac: /^1\.[\w-]{43}$/,
      size: text(0).length,
    });
    t.notOk(JSON.stringify(told).includes('customer'), 'never the text');
    const ids = new Set(told.map((l) => l.fields['request_id']));
    const recorded: unknown[] = [];
    for await (const record of readRecords(auditDir)) if (ids.has(record.request_id)) recorded.push(record);
    t.equal(recorded.length, ids.size);
    t.match(recorded[0], { kind: 'decision', decision: 'error', code: 'E5000', subject: 'user:ann' });
    t.same(readdirSync(compiling), [], 'and are told of once');
  },
);
