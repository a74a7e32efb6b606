import { RANGES } from '../types/types.js';
import { growing, scalar } from './define.js';
import type { FunctionDefinition } from './definition.js';
import { SEARCH_FUNCTIONS } from './searches.js';

/** Parts of addresses. */
const ADDRESSES: readonly FunctionDefinition[] = [
  scalar('host', ['inet'], 'text'),
  scalar('abbrev', ['inet'], 'text'),
  scalar('abbrev', ['cidr'], 'text'),
  scalar('family', ['inet'], 'int4'),
  scalar('masklen', ['inet'], 'int4'),
  scalar('network', ['inet'], 'cidr'),
  scalar('netmask', ['inet'], 'inet'),
  scalar('broadcast', ['inet'], 'inet'),
  scalar('hostmask', ['inet'], 'inet'),
  scalar('set_masklen', ['inet', 'int4'], 'inet'),
  scalar('set_masklen', ['cidr', 'int4'], 'cidr'),
];

/** Ends of ranges. */
const ENDS: readonly FunctionDefinition[] = (['anyrange', 'anymultirange'] as const).flatMap((span) => [
  scalar('lower', [span], 'anyelement'),
  scalar('upper', [span], 'anyelement'),
  ...['isempty', 'lower_inc', 'upper_inc', 'lower_inf', 'upper_inf'].map((name) =>
    scalar(name, [span], 'bool'),
  ),
]);

/** Ranges of their ends, and of ends with the brackets around them; the lower one must not be above the upper. */
const MADE: readonly FunctionDefinition[] = RANGES.flatMap(({ range, element }) =>
  growing(range, [element, element], ['text'], range),
);

/** The smallest range that holds two, and the ranges of one. */
const MERGED: readonly FunctionDefinition[] = [
  scalar('range_merge', ['anyrange', 'anyrange'], 'anyrange'),
  scalar('range_merge', ['anymultirange'], 'anyrange'),
  scalar('multirange', ['anyrange'], 'anymultirange'),
];

/** Functions of types that say where something lies: addresses, ranges, words of documents. */
export const PLACE_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  ...ADDRESSES,
  ...ENDS,
  ...MADE,
  ...MERGED,
  ...SEARCH_FUNCTIONS,
]);
