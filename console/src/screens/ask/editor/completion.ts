import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete';
import type { Schema } from '../../../../../clients/typescript/types.js';
import { completionsAt, type Offer } from './completions-at.js';

const TYPES: Readonly<Record<Offer['kind'], string>> = {
  entity: 'class',
  column: 'property',
  facet: 'text',
  metric: 'constant',
  function: 'function',
  form: 'interface',
  keyword: 'keyword',
  alias: 'variable',
};
/** What is nearest to the question comes first. */
const BOOST: Readonly<Record<Offer['kind'], number>> = {
  column: 40,
  alias: 35,
  entity: 30,
  facet: 30,
  metric: 25,
  form: 20,
  keyword: 0,
  function: -20,
};

/** Offers names of the caller's own schema; none before that has come. */
export function completionSource(schema: () => Schema | null) {
  return (context: CompletionContext): CompletionResult | null => {
    const known = schema();
    if (known === null) return null;
    const found = completionsAt(context.state.doc.toString(), context.pos, known);
    if (found === null || found.offers.length === 0) return null;
    if (
      !context.explicit &&
      found.from === context.pos &&
      !/[.(']\s*$|\b(?:from|join)\s+$/i.test(textBefore(context))
    )
      return null;
    return { from: found.from, options: found.offers.map(optionOf), validFor: /^[\p{L}\p{N}_$]*$/u };
  };
}

function textBefore({ state, pos }: CompletionContext): string {
  return state.sliceDoc(Math.max(0, pos - 40), pos);
}

function optionOf({ label, kind, detail, info, text }: Offer): Completion {
  return {
    label,
    type: TYPES[kind],
    detail,
    boost: BOOST[kind],
    ...(info !== null && { info }),
    ...(text !== undefined && { apply: text }),
  };
}
