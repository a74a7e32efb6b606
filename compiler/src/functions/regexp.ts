import { scalar } from './define.js';
import type { FunctionDefinition } from './definition.js';

/** POSIX regular expressions; none that returns a set. */
export const REGEXP_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  scalar('regexp_like', ['text', 'text'], 'bool'),
  scalar('regexp_like', ['text', 'text', 'text'], 'bool'),
  scalar('regexp_count', ['text', 'text'], 'int4'),
  scalar('regexp_count', ['text', 'text', 'int4'], 'int4'),
  scalar('regexp_count', ['text', 'text', 'int4', 'text'], 'int4'),
  scalar('regexp_instr', ['text', 'text'], 'int4'),
  scalar('regexp_instr', ['text', 'text', 'int4'], 'int4'),
  scalar('regexp_instr', ['text', 'text', 'int4', 'int4'], 'int4'),
  scalar('regexp_instr', ['text', 'text', 'int4', 'int4', 'int4'], 'int4'),
  scalar('regexp_instr', ['text', 'text', 'int4', 'int4', 'int4', 'text'], 'int4'),
  scalar('regexp_instr', ['text', 'text', 'int4', 'int4', 'int4', 'text', 'int4'], 'int4'),
  scalar('regexp_substr', ['text', 'text'], 'text'),
  scalar('regexp_substr', ['text', 'text', 'int4'], 'text'),
  scalar('regexp_substr', ['text', 'text', 'int4', 'int4'], 'text'),
  scalar('regexp_substr', ['text', 'text', 'int4', 'int4', 'text'], 'text'),
  scalar('regexp_substr', ['text', 'text', 'int4', 'int4', 'text', 'int4'], 'text'),
  scalar('regexp_match', ['text', 'text'], 'text[]'),
  scalar('regexp_match', ['text', 'text', 'text'], 'text[]'),
  scalar('regexp_replace', ['text', 'text', 'text'], 'text'),
  scalar('regexp_replace', ['text', 'text', 'text', 'int4'], 'text'),
  scalar('regexp_replace', ['text', 'text', 'text', 'text'], 'text'),
  scalar('regexp_replace', ['text', 'text', 'text', 'int4', 'int4'], 'text'),
  scalar('regexp_replace', ['text', 'text', 'text', 'int4', 'int4', 'text'], 'text'),
  scalar('regexp_split_to_array', ['text', 'text'], 'text[]'),
  scalar('regexp_split_to_array', ['text', 'text', 'text'], 'text[]'),
]);
