import { growing, scalar } from './define.js';
import type { FunctionDefinition } from './definition.js';

/** POSIX regular expressions; none that returns a set. */
export const REGEXP_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  ...growing('regexp_like', ['text', 'text'], ['text'], 'bool'),
  ...growing('regexp_count', ['text', 'text'], ['int4', 'text'], 'int4'),
  ...growing('regexp_instr', ['text', 'text'], ['int4', 'int4', 'int4', 'text', 'int4'], 'int4'),
  ...growing('regexp_substr', ['text', 'text'], ['int4', 'int4', 'text', 'int4'], 'text'),
  ...growing('regexp_match', ['text', 'text'], ['text'], 'text[]'),
  ...growing('regexp_replace', ['text', 'text', 'text'], ['int4'], 'text'),
  scalar('regexp_replace', ['text', 'text', 'text', 'text'], 'text'),
  ...growing('regexp_replace', ['text', 'text', 'text', 'int4', 'int4'], ['text'], 'text'),
  ...growing('regexp_split_to_array', ['text', 'text'], ['text'], 'text[]'),
]);
