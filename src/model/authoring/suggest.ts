import { stringify } from 'yaml';
import { type AdoptionCandidate, draftOf } from '../discovery/index.js';
import { fullView, type Match, resolve, shortName } from '../graph/index.js';
import type { FragmentDocument } from '../manifest/index.js';
import type { Model } from '../served-model.js';
import { check, type DraftFinding } from './check.js';

/** A proposed fragment. It is not stored: its reader may edit, check and publish it. */
export interface Suggestion {
  readonly fragment: {
    readonly yaml: string;
    readonly json: FragmentDocument;
  };
  readonly diagnostics: readonly DraftFinding[];
  readonly notes: readonly string[];
}

export function suggestRelation(candidate: AdoptionCandidate, model: Model): Suggestion {
  const { fragment, notes } = draftOf(candidate, model.manifest);
  return suggestionOf(fragment, notes, model);
}

/** Draft of a lexicon term that refers to the best match in the whole graph; null if there is none. */
export function suggestTerm(term: string, model: Model): Suggestion | null {
  const { matches } = resolve(term, fullView(model.manifest));
  const targets = matches.filter(canBeMeant).map((m) => ({ ...m, name: shortName(m.fqn) }));
  const [best, ...others] = targets;
  if (best === undefined) return null;
  const notes = [`${best.name}: ${best.score}, by its ${best.via}`];
  if (others.length > 0) notes.push(`it could also mean ${others.map((o) => o.name).join(', ')}`);
  if (model.manifest.lexicon.has(term)) notes.push('the lexicon has this term: the draft would replace it');
  const lexicon = Object.assign(Object.create(null), { [term]: { refers_to: best.name } });
  return suggestionOf({ lexicon }, notes, model);
}

/** A lexicon term can refer to entities, their columns, metrics and facets. */
function canBeMeant({ kind, fqn }: Match): boolean {
  if (kind === 'bridge' || kind === 'derived') return false;
  return kind !== 'column' || fqn.startsWith('osl.entities.');
}

function suggestionOf(json: FragmentDocument, notes: readonly string[], model: Model): Suggestion {
  const yaml = stringify(json, { nullStr: '', lineWidth: 110 });
  const checked = check({ kind: 'fragment', text: yaml, placed: false }, model);
  return { fragment: { yaml, json }, diagnostics: checked.ok ? [] : checked.findings, notes };
}
