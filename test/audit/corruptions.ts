import type { AuditVerdict, ProblemKind } from '../../audit/verdict.js';
import { linked, rechained, type StoredLog, type StoredRecord, type StoredSegment } from './stored-log.js';

/** Finding that the verifier must report. `null`: nothing is wrong that the log itself could show. */
interface Expected {
  readonly kind: ProblemKind | null;
  readonly integrity: AuditVerdict['integrity'];
  readonly completeness: AuditVerdict['completeness'];
}

export interface Corruption {
  readonly what: string;
  readonly does: (log: StoredLog) => void;
  readonly expected: Expected;
}

const altered = (kind: ProblemKind): Expected => ({ kind, integrity: 'damaged', completeness: 'unknown' });
const missing = (kind: ProblemKind): Expected => ({ kind, integrity: 'damaged', completeness: 'incomplete' });
const CUT: Expected = { kind: 'cut', integrity: 'intact', completeness: 'incomplete' };
const UNSEEN: Expected = { kind: null, integrity: 'intact', completeness: 'complete' };

const PLACES = ['first', 'middle', 'late'] as const;
/** `late`: the last segment but one, which is complete. */
type Place = (typeof PLACES)[number] | 'last';

function at<T>(list: readonly T[], place: Place): T {
  const index = {
    first: 0,
    middle: Math.floor(list.length / 2),
    late: list.length - 2,
    last: list.length - 1,
  }[place];
  const found = list[index];
  if (found === undefined) throw new Error('there is nothing at that place');
  return found;
}

/** Changes to a record in the middle of a segment. */
const OF_A_RECORD: readonly (readonly [
  what: string,
  kind: ProblemKind,
  does: (segment: StoredSegment, index: number) => void,
])[] = [
  [
    'a value altered, of the same length',
    'chain',
    (s, i) => change(s, i, (text) => text.replace('analyst-eu', 'analyst-us')),
  ],
  [
    'a value altered, longer',
    'chain',
    (s, i) => change(s, i, (text) => text.replace('analyst-eu', 'analyst-europe')),
  ],
  [
    'its subject removed',
    'chain',
    (s, i) => change(s, i, (text) => text.replace('"subject":"analyst-eu"', '"subject":null')),
  ],
  ['a bit of its chain hash', 'chain', (s, i) => flip(record(s, i).chain)],
  ['its hash made to fit an altered text, those after it not', 'chain', (s, i) => refit(s, i)],
  ['removed', 'sequence', (s, i) => void s.records.splice(i, 1)],
  ['put in twice', 'sequence', (s, i) => void s.records.splice(i, 0, { ...record(s, i) })],
  [
    'swapped with the next',
    'sequence',
    (s, i) => void s.records.splice(i, 2, record(s, i + 1), record(s, i)),
  ],
  ['moved three places on', 'sequence', (s, i) => void s.records.splice(i + 3, 0, ...s.records.splice(i, 1))],
  [
    'another with its seq put in its place, of no chain',
    'chain',
    (s, i) => void s.records.splice(i, 1, { ...record(s, i), text: forged(record(s, i).text) }),
  ],
];

function record({ records }: StoredSegment, index: number): StoredRecord {
  const found = records[index];
  if (found === undefined) throw new Error('there is no such record');
  return found;
}

function change(segment: StoredSegment, index: number, how: (text: string) => string): void {
  const before = record(segment, index).text;
  const text = how(before);
  if (text === before)
    throw new Error(
      `the corruption changes nothing: ${index} of ${segment.records.length} in ${segment.number}`,
    );
  segment.records[index] = { ...record(segment, index), text };
}

function flip(bytes: Buffer): void {
  bytes.writeUInt8(bytes.readUInt8(7) ^ 0x10, 7);
}

/** Whoever can hash makes one record fit; the next one then does not. */
function refit(segment: StoredSegment, index: number): void {
  change(segment, index, (text) => text.replace('analyst-eu', 'analyst-us'));
  const one = record(segment, index);
  one.chain = linked(record(segment, index - 1).chain, one.text);
}

function forged(text: string): string {
  return text.replace(/"request_id":"[^"]*"/, '"request_id":"forged"');
}

const RECORDS: readonly Corruption[] = OF_A_RECORD.flatMap(([what, kind, does]) =>
  PLACES.map((place) => ({
    what: `a record of the ${place} segment: ${what}`,
    does: (log) => {
      const segment = at(log.segments, place);
      does(segment, Math.floor(segment.records.length / 2));
    },
    expected: altered(kind),
  })),
);

const header = (
  what: string,
  kind: ProblemKind,
  does: (segment: StoredSegment) => void,
  place: Place = 'middle',
): Corruption => ({
  what: `the ${place} segment: ${what}`,
  does: (log) => does(at(log.segments, place)),
  expected: kind === 'gap' ? missing(kind) : altered(kind),
});

const SEGMENTS: readonly Corruption[] = [
  {
    what: 'the first segment gone',
    does: (log) => void log.segments.shift(),
    expected: missing('segment_missing'),
  },
  {
    what: 'a segment gone from the middle',
    does: (log) => void log.segments.splice(Math.floor(log.segments.length / 2), 1),
    expected: missing('segment_missing'),
  },
  { what: 'the last segment gone', does: (log) => void log.segments.pop(), expected: CUT },
  { what: 'all segments gone', does: (log) => void log.segments.splice(0), expected: CUT },
  { what: 'two segments under each other’s number', does: swapSegments, expected: missing('gap') },
  header('its end cut off', 'gap', (segment) => void segment.records.splice(-2)),
  header('emptied', 'gap', (segment) => void segment.records.splice(0)),
  header('it says another chain before it', 'header', (segment) => flip(segment.chain)),
  header('it says that it begins earlier', 'header', (segment) => {
    segment.firstSeq -= 1;
  }),
  header('it says that it begins later', 'gap', (segment) => {
    segment.firstSeq += 1;
  }),
  header(
    'it says an earlier opening',
    'header',
    (segment) => {
      segment.epoch = 1;
    },
    'last',
  ),
  {
    what: 'the last segment emptied',
    does: (log) => void at(log.segments, 'last').records.splice(0),
    expected: CUT,
  },
];

function swapSegments(log: StoredLog): void {
  const [, a, b] = log.segments;
  if (a === undefined || b === undefined) throw new Error('there are too few segments');
  [a.number, b.number] = [b.number, a.number];
  log.segments.sort((one, other) => one.number - other.number);
}

const WHOLE: readonly Corruption[] = [
  ...PLACES.map(
    (place): Corruption => ({
      what: `a record of the ${place} segment altered, and everything chained anew`,
      does: (log) => {
        const segment = at(log.segments, place);
        change(segment, 2, (text) => text.replace('analyst-eu', 'analyst-us'));
        rechained(log);
      },
      expected: altered('root'),
    }),
  ),
  {
    what: 'a record taken out, all renumbered, and everything chained anew',
    does: (log) => {
      at(log.segments, 'first').records.splice(3, 1);
      renumber(log);
      rechained(log);
    },
    expected: altered('root'),
  },
  {
    what: 'all under another writer, chained anew',
    does: (log) => eachText(log, (text) => text.replace(/"writer":"[^"]*"/, '"writer":"mallory"')),
    expected: altered('record'),
  },
  {
    what: 'a text that is not canonical, chained anew',
    does: (log) => eachText(log, (text) => text.replace('{"action"', '{ "action"')),
    expected: altered('record'),
  },
  {
    what: 'members in another order, chained anew',
    does: (log) =>
      eachText(log, (text) => text.replace(/^\{("action":"[^"]*"),("chain":\[[^\]]*\])/, '{$2,$1')),
    expected: altered('record'),
  },
  {
    what: 'a number that is written otherwise, chained anew',
    does: (log) => eachText(log, (text) => text.replace('"rows":3', '"rows":3.0')),
    expected: altered('record'),
  },
  {
    what: 'an escape where none is needed, chained anew',
    does: (log) => eachText(log, (text) => text.replace('"acme"', '"\\u0061cme"')),
    expected: altered('record'),
  },
  {
    what: 'no record, but text, chained anew',
    does: (log) => {
      at(log.segments, 'first').records[2] = { ...record(at(log.segments, 'first'), 2), text: '"nothing"' };
      rechained(log);
    },
    expected: altered('sequence'),
  },
  {
    what: 'another opening in all records, chained anew',
    does: (log) => eachText(log, (text) => text.replace(/"epoch":\d+/, '"epoch":9')),
    expected: altered('record'),
  },
];

function eachText(log: StoredLog, how: (text: string) => string): void {
  for (const segment of log.segments) for (const one of segment.records) one.text = how(one.text);
  rechained(log);
}

function renumber(log: StoredLog): void {
  let seq = 0;
  for (const segment of log.segments) {
    segment.firstSeq = seq;
    for (const one of segment.records) {
      one.text = one.text.replace(/"seq":\d+/, `"seq":${seq}`);
      seq += 1;
    }
  }
}

const note = (log: StoredLog, index: number, how: (text: string) => string): void => {
  const before = log.lasting.at(index) ?? '';
  const after = how(before);
  if (after === before) throw new Error('the corruption changes nothing');
  log.lasting.splice(index, 1, after);
};

const CHECKPOINTS: readonly Corruption[] = [
  {
    what: 'no checkpoint',
    does: (log) => {
      log.lasting = [];
      log.latest = null;
    },
    expected: altered('checkpoint'),
  },
  {
    what: 'a checkpoint of more records',
    does: (log) => note(log, 1, (text) => text.replace(/\n(\d+)\n/, '\n9$1\n')),
    expected: altered('checkpoint'),
  },
  {
    what: 'a checkpoint of another root',
    does: (log) =>
      note(log, 1, (text) => text.replace(/\n[A-Za-z0-9+/]{4}(?=[A-Za-z0-9+/]{39}=\n)/, '\nAAAA')),
    expected: altered('checkpoint'),
  },
  {
    what: 'a checkpoint of another time',
    does: (log) => note(log, 1, (text) => text.replace(/time 20\d\d/, 'time 2001')),
    expected: altered('checkpoint'),
  },
  {
    what: 'a checkpoint of another log',
    does: (log) => note(log, 1, (text) => text.replace(/^osl-audit\/[^\n]*/, 'osl-audit/other')),
    expected: altered('checkpoint'),
  },
  {
    what: 'a signature of nothing',
    does: (log) => note(log, 1, (text) => text.replace(/[A-Za-z0-9+/]{8}={0,2}\n$/, 'AAAAAAAA\n')),
    expected: altered('checkpoint'),
  },
  {
    what: 'checkpoints in another order',
    does: (log) => {
      log.lasting.reverse();
    },
    expected: altered('checkpoint'),
  },
  {
    what: 'the newest checkpoint of more records',
    does: (log) => {
      log.latest = (log.lasting.at(-1) ?? '').replace(/\n(\d+)\n/, '\n9$1\n');
    },
    expected: altered('checkpoint'),
  },
  { what: 'the log and its checkpoints cut back together', does: cutBack, expected: UNSEEN },
];

/** An older log, whole: only a checkpoint kept elsewhere tells. */
function cutBack(log: StoredLog): void {
  log.lasting = log.lasting.slice(0, 2);
  log.latest = null;
  const size = Number(/\n(\d+)\n/.exec(log.lasting[1] ?? '')?.[1]);
  log.segments = log.segments.filter(({ firstSeq }) => firstSeq < size);
  const last = log.segments.at(-1);
  last?.records.splice(size - (last?.firstSeq ?? 0));
}

const KEYS: readonly Corruption[] = [
  {
    what: 'no key',
    does: (log) => {
      log.key = null;
    },
    expected: altered('verifier_key'),
  },
  {
    what: 'a key that is none',
    does: (log) => {
      log.key = 'osl-audit/x+00000000+AAAA\n';
    },
    expected: altered('verifier_key'),
  },
  {
    what: 'a key whose name is changed',
    does: (log) => {
      log.key = (log.key ?? '').replace('osl-audit/', 'osl-audit/x');
    },
    expected: altered('verifier_key'),
  },
];

/** Findings A19: what nothing vouched for when a process was killed. */
const TAILS: readonly Corruption[] = [
  {
    what: 'a forged tail that no checkpoint covers, well chained',
    does: (log) => forgeTail(log, 3),
    expected: UNSEEN,
  },
  {
    what: 'a tail that no checkpoint covers, with one record altered',
    does: (log) => {
      forgeTail(log, 3);
      change(at(log.segments, 'last'), at(log.segments, 'last').records.length - 2, (text) =>
        text.replace('analyst-eu', 'analyst-us'),
      );
    },
    expected: altered('chain'),
  },
  {
    what: 'a tail that no checkpoint covers, with a hole in it',
    does: (log) => {
      forgeTail(log, 3);
      at(log.segments, 'last').records.splice(-2, 1);
    },
    expected: altered('sequence'),
  },
  {
    what: 'the last record cut off, which a checkpoint covers',
    does: (log) => void at(log.segments, 'last').records.pop(),
    expected: CUT,
  },
];

function forgeTail(log: StoredLog, count: number): void {
  const segment = at(log.segments, 'last');
  const model = record(segment, 1);
  for (let n = 0; n < count; n += 1) {
    const seq = segment.firstSeq + segment.records.length;
    const text = forged(model.text)
      .replace(/"seq":\d+/, `"seq":${seq}`)
      .replace(/"epoch":\d+/, `"epoch":${segment.epoch}`);
    const chain = linked(segment.records.at(-1)?.chain ?? segment.chain, text);
    segment.records.push({ text, chain, begins: true });
  }
}

export const CORRUPTIONS: readonly Corruption[] = [
  ...RECORDS,
  ...SEGMENTS,
  ...WHOLE,
  ...CHECKPOINTS,
  ...KEYS,
  ...TAILS,
];
