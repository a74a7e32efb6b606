import { nearest } from 'osl-compiler';
import { atOnce, mapInSteps } from '../../base/in-turns.js';
import { termTexts } from '../../base/text/terms.js';
import { columnName, entityName, facetName, type GraphView, metricName } from './view.js';

/** Response of `GET /osl/schema/resolve`. */
export interface Resolution {
  readonly term: string;
  /** Best match first; matches with equal scores are ordered by name. */
  readonly matches: readonly Match[];
}

export interface Match {
  readonly fqn: string;
  readonly kind: MatchKind;
  /** Score from 0 (exclusive) to 1, rounded to four decimals. Depends only on the term and the object. */
  readonly score: number;
  readonly via: 'name' | 'lexicon' | 'description';
}

type MatchKind = 'entity' | 'column' | 'derived' | 'metric' | 'facet' | 'bridge';

export const MAX_MATCHES = 20;

/** Scores of exact and partial matches, by the part of the object that was matched. */
const WORTH = {
  name: { exact: 1, words: 0.8 },
  lexicon: { exact: 0.95, words: 0.75 },
  description: { words: 0.4 },
} as const;
/** Score of a name that differs from the term by a typo. */
const SLIP = 0.5;
/** Minimum length of terms for which a typo is tolerated. */
const SLIP_LENGTH = 4;
/** Minimum share of the term's words that a description must contain. */
const DESCRIBED = 0.5;

/** Finds the objects of `view` that a business term may refer to. */
export function resolve(term: string, view: GraphView): Resolution {
  return atOnce(resolveSteps(term, view));
}

export function* resolveSteps(term: string, view: GraphView): Generator<void, Resolution> {
  const wanted = phraseOf(term);
  const candidates = yield* candidatesIn(view);
  const matches = (yield* mapInSteps(candidates, (candidate) => matchOf(wanted, candidate)))
    .filter((match) => match !== null)
    .sort((a, b) => b.score - a.score || (a.fqn < b.fqn ? -1 : a.fqn > b.fqn ? 1 : 0));
  return { term, matches: matches.slice(0, MAX_MATCHES) };
}

/** A text prepared for comparison: lower-cased, with stemmed words. */
interface Phrase {
  readonly text: string;
  readonly words: ReadonlySet<string>;
}

interface TermCandidate {
  readonly fqn: string;
  readonly kind: MatchKind;
  readonly name: Phrase;
  readonly lexicon: readonly Phrase[];
  readonly description: ReadonlySet<string>;
}

function matchOf(wanted: Phrase, candidate: TermCandidate): Match | null {
  const { fqn, kind } = candidate;
  const found: readonly (readonly [Match['via'], number])[] = [
    ['name', Math.max(likeness(wanted, candidate.name, WORTH.name), slip(wanted, candidate.name))],
    ['lexicon', Math.max(0, ...candidate.lexicon.map((p) => likeness(wanted, p, WORTH.lexicon)))],
    ['description', described(wanted, candidate.description)],
  ];
  const [via, score] = found.reduce((best, next) => (next[1] > best[1] ? next : best));
  return score === 0 ? null : { fqn, kind, score: Math.round(score * 10_000) / 10_000, via };
}

/** Scores two phrases: `exact` if they are equal, otherwise by the share of common words (Dice coefficient). */
function likeness(a: Phrase, b: Phrase, worth: { readonly exact: number; readonly words: number }): number {
  if (a.text === b.text) return worth.exact;
  const total = a.words.size + b.words.size;
  return total === 0 ? 0 : (worth.words * 2 * common(a.words, b.words)) / total;
}

function slip(a: Phrase, b: Phrase): number {
  return a.text.length >= SLIP_LENGTH && nearest(a.text, [b.text]) !== null ? SLIP : 0;
}

function described(wanted: Phrase, description: ReadonlySet<string>): number {
  const share = wanted.words.size === 0 ? 0 : common(wanted.words, description) / wanted.words.size;
  return share < DESCRIBED ? 0 : WORTH.description.words * share;
}

function common(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let count = 0;
  for (const word of a) if (b.has(word)) count += 1;
  return count;
}

function phraseOf(text: string): Phrase {
  const plain = text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[\s_-]+/g, ' ')
    .trim();
  return { text: plain, words: new Set(termTexts(text.replaceAll('_', ' '))) };
}

const known = new WeakMap<GraphView, readonly TermCandidate[]>();

function* candidatesIn(view: GraphView): Generator<void, readonly TermCandidate[]> {
  let candidates = known.get(view);
  if (candidates === undefined) {
    candidates = yield* allIn(view);
    known.set(view, candidates);
  }
  return candidates;
}

interface DescribedObject {
  readonly name: string;
  readonly description: string | null;
  readonly synonyms: readonly string[];
}

function candidate(
  kind: MatchKind,
  fqn: string,
  { name, description, synonyms }: DescribedObject,
): TermCandidate {
  return {
    fqn,
    kind,
    name: phraseOf(name),
    lexicon: synonyms.map(phraseOf),
    description: description === null ? new Set() : new Set(termTexts(description)),
  };
}

function* allIn({ entities, metrics, facets, links }: GraphView): Generator<void, readonly TermCandidate[]> {
  const bridges = new Map(
    links.flatMap(({ bridge, description }) =>
      bridge === null ? [] : [[bridge.name, { ...bridge, description, synonyms: [] }] as const],
    ),
  );
  const columnsOf = (owner: { readonly name: string; readonly columns: readonly DescribedObject[] }) =>
    owner.columns.map((c) => candidate('column', columnName(owner.name, c.name), c));
  return [
    ...(yield* mapInSteps(entities, (e) => [
      candidate('entity', entityName(e.name), e),
      ...columnsOf(e),
      ...e.derived.map((d) => candidate('derived', columnName(e.name, d.name), d)),
    ])).flat(),
    ...(yield* mapInSteps(bridges.values(), (b) => [
      candidate('bridge', entityName(b.name), b),
      ...columnsOf(b),
    ])).flat(),
    ...(yield* mapInSteps(metrics, (m) => candidate('metric', metricName(m.name), m))),
    ...(yield* mapInSteps(facets, (f) => candidate('facet', facetName(f.name), f))),
  ];
}
