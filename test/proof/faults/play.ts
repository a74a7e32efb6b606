import { setTimeout } from 'node:timers/promises';
import { Conversation, type Message } from '../../surfaces/pg/fuzz/conversation.js';
import { query } from '../../wire/support/bytes.js';
import { Peer } from './peer.js';
import { type Login, loginSteps, step, type Trace } from './traces.js';
import type { World } from './world.js';

/** How long something may take to come to rest that nobody waits for. */
const REST_MS = 120_000;

export interface Played {
  readonly heard: readonly Message[];
  /** Every step was answered. */
  readonly whole: boolean;
  /** What the protocol does not allow, or null. */
  readonly fault: string | null;
}

/** A client that logs in, does what `trace` says, and closes; or is cut off somewhere. Throws where it hangs. */
export async function play(world: World, port: number, login: Login, trace: Trace): Promise<Played> {
  const before = world.audit.decisions;
  const peer = new Peer(port);
  try {
    const talk = new Conversation();
    let whole = await steps(peer, loginSteps(login, world.caller));
    if (whole) {
      peer.talk = talk;
      whole = await steps(peer, trace);
    }
    await peer.end();
    const fault = talk.fault ?? (await unrecorded(world, before, talk.statements));
    return { heard: [...peer.heard], whole, fault };
  } finally {
    peer.socket.destroy();
  }
}

/** True if every step was answered, or the connection ended before. */
export async function steps(peer: Peer, all: Trace): Promise<boolean> {
  for (const { send, done } of all) {
    peer.send(send(peer.heard));
    if (!(await peer.until(done))) return false;
  }
  return true;
}

/** A refusal by the protocol is recorded after it was said. */
async function unrecorded(world: World, before: number, statements: number): Promise<string | null> {
  const missing = (): number => statements - (world.audit.decisions - before);
  return (await within(REST_MS, () => missing() <= 0)) ? null : `${missing()} statements are not in the log`;
}

/** True if `condition` comes true in time. */
export async function within(ms: number, condition: () => boolean | Promise<boolean>): Promise<boolean> {
  const end = Date.now() + ms;
  for (let waited = 0; ; waited++) {
    if (await condition()) return true;
    if (Date.now() > end) return false;
    await setTimeout(waited < 20 ? 1 : 20);
  }
}

/**
 * What is wrong once the dust has settled, or null: a client that is still there, a request that was let in and has no
 * outcome, an upstream session that nobody gave back, a next client that is not served. The pool of `world.port` has
 * one session, so it is not served while that session is held.
 */
export async function unsettled(
  world: World,
  codes: readonly string[] = [],
  port = world.port,
): Promise<string | null> {
  if (!(await within(REST_MS, () => world.connections === 0))) return 'a client is not let go';
  if (!(await within(REST_MS, () => world.audit.open === 0)))
    return `${world.audit.open} requests have no outcome`;
  let answer = '';
  // A session that died just now is noticed by who uses it, and a server that starts anew takes its time.
  const served = await within(REST_MS, async () => {
    answer = await ask(world, 'select count(*), max(email) from customer', port);
    return !codes.some((code) => answer.includes(`C${code}`));
  });
  return served && /^D 4\s*\[redacted\]$/m.test(answer) ? null : `the next client is told ${answer}`;
}

/** One question of a client of its own, straight at the gateway. */
export async function ask(world: World, sql: string, port = world.port): Promise<string> {
  const { heard } = await play(world, port, 'token', [step(1, query(sql))]);
  const from = heard.findIndex((m) => m.type === 'Z') + 1;
  return heard
    .slice(from)
    .map(
      (m) =>
        `${m.type} ${m.body
          .toString('latin1')
          .replace(/[^\x20-\x7e]/g, ' ')
          .trim()}`,
    )
    .join('\n');
}
