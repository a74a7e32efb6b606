import { type Message, reportOf } from '../../surfaces/pg/fuzz/conversation.js';
import { outline } from '../../surfaces/pg/fuzz/player.js';

/**
 * Whether what a client heard is what the whole trace says, or as much of it as came before a clean error. Gives what is
 * wrong, or null.
 *
 * `whole` is what an untroubled client heard. Both are compared from one ReadyForQuery to the next: each stretch is the
 * same; or begins the same and goes on with one error of `codes`; or ends with the connection. So a statement is never
 * complete with fewer rows.
 */
export function judge(
  heard: readonly Message[],
  whole: readonly Message[],
  codes: readonly string[],
): string | null {
  const wanted = stretches(whole);
  const given = stretches(heard);
  if (given.length > wanted.length) return 'more answers than questions';
  let failed = false;
  for (const [i, stretch] of given.entries()) {
    const right = wanted[i] ?? [];
    if (same(stretch, right)) continue;
    const ended = stretch.at(-1)?.type !== 'Z';
    const at = stretch.findIndex((m, j) => right[j] === undefined || line(m) !== line(right[j]));
    const found = stretch[at];
    if (found === undefined) {
      if (ended && i === given.length - 1) return null;
      return `answer ${i} stops short`;
    }
    if (found.type === 'E') {
      const code = reportOf(found.body).get('C') ?? '';
      if (!codes.includes(code)) return `answer ${i} fails with ${outline([found])}`;
      failed = true;
      const after = stretch.slice(at + 1).map((m) => m.type);
      if (after.join('') !== 'Z' && !(ended && after.length === 0))
        return `after an error comes ${after.join('')}`;
      continue;
    }
    // A block that failed: its state is another, and COMMIT says ROLLBACK.
    if (failed && (found.type === 'Z' || line(found) === 'C ROLLBACK')) continue;
    return `answer ${i} has ${line(found)} for ${right[at] === undefined ? 'nothing' : line(right[at])}`;
  }
  return null;
}

function stretches(messages: readonly Message[]): readonly (readonly Message[])[] {
  const found: Message[][] = [];
  let open: Message[] | null = null;
  for (const message of messages) {
    if (open === null) {
      open = [];
      found.push(open);
    }
    open.push(message);
    if (message.type === 'Z') open = null;
  }
  return found;
}

function same(a: readonly Message[], b: readonly Message[]): boolean {
  return a.length === b.length && a.every((m, i) => b[i] !== undefined && line(m) === line(b[i]));
}

/** What differs from login to login is left out. */
function line(message: Message): string {
  return outline([message]);
}
