import type { AuditRecord } from '../../api/admin-types.js';
import { counted, shortName, tookOf } from '../../parts/load/words.js';

/** How a record ends, for its badge. */
export type Tone = 'good' | 'bad' | 'quiet';

/** Who is behind a record. */
export function whoOf({ subject, chain }: AuditRecord): string {
  if (chain.length > 0) return chain.join(' → ');
  return subject ?? 'nobody proved who';
}

/** What it was about, in few words. */
export function aboutOf({ objects, objects_omitted }: AuditRecord): string {
  const first = objects.slice(0, 3).map(shortName).join(', ');
  const more = objects.length - 3 + objects_omitted;
  return more > 0 ? `${first} and ${counted(more)} more` : first;
}

export function resultOf({ kind, decision, outcome, code }: AuditRecord): {
  readonly text: string;
  readonly tone: Tone;
} {
  const text = kind === 'decision' ? (decision ?? '') : kind === 'outcome' ? (outcome ?? '') : 'event';
  const tone = text === 'allow' || text === 'ok' ? 'good' : text === 'event' ? 'quiet' : 'bad';
  return { text: code === null ? text : `${text} ${code}`, tone };
}

/** One sentence about a record. */
export function sentenceOf(record: AuditRecord): string {
  const { kind, action, surface, form, decision, outcome, rows, duration_us, code } = record;
  switch (kind) {
    case 'decision': {
      const about = aboutOf(record);
      const asked = `${action}${form === null ? '' : ` (${form})`} over ${surface}${about === '' ? '' : `, about ${about}`}`;
      return decision === 'allow'
        ? `${asked}: allowed`
        : `${asked}: ${decision ?? 'refused'}${code === null ? '' : ` with ${code}`}`;
    }
    case 'outcome': {
      const result = outcome === 'ok' ? 'succeeded' : (outcome ?? 'ended');
      const returned = rows === null ? '' : `, ${counted(rows)} ${rows === 1 ? 'row' : 'rows'} returned`;
      const took = duration_us === null ? '' : ` in ${tookOf(duration_us)}`;
      return `${result}${code === null ? '' : ` with ${code}`}${returned}${took}`;
    }
    case 'event':
      return action;
    default: {
      const unknown: never = kind;
      return unknown;
    }
  }
}

/** The members of a record that a sentence leaves out, in the order in which they are read. */
export function particularsOf(record: AuditRecord): readonly (readonly [name: string, value: string])[] {
  const { versions, objects, statement_hmac, detail, writer, epoch, seq } = record;
  const all: readonly (readonly [string, string | null])[] = [
    ['objects', objects.length === 0 ? null : objects.join(', ')],
    ['policy', versions?.policy ?? null],
    ['manifest', versions?.manifest ?? null],
    ['statement', statement_hmac === null ? null : `${statement_hmac} (its keyed fingerprint)`],
    ['detail', detail ?? null],
    ['place', `record ${seq} of ${writer}, opening ${epoch}`],
  ];
  return all.filter((entry): entry is readonly [string, string] => entry[1] !== null);
}
