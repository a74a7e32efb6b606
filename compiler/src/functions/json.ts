import { growing, STABLE, scalar } from './define.js';
import type { FunctionDefinition } from './definition.js';

/** jsonb; `json` and `jsonpath` are no types of the model. */
export const JSON_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  scalar('jsonb_typeof', ['jsonb'], 'text'),
  scalar('jsonb_array_length', ['jsonb'], 'int4'),

  scalar('jsonb_extract_path', ['jsonb', 'text'], 'jsonb', { variadic: 'text' }),
  scalar('jsonb_extract_path_text', ['jsonb', 'text'], 'text', { variadic: 'text' }),

  ...growing('jsonb_set', ['jsonb', 'text[]', 'jsonb'], ['bool'], 'jsonb'),
  ...growing('jsonb_insert', ['jsonb', 'text[]', 'jsonb'], ['bool'], 'jsonb'),
  scalar('jsonb_strip_nulls', ['jsonb'], 'jsonb'),
  scalar('jsonb_pretty', ['jsonb'], 'text'),

  scalar('to_jsonb', ['anyelement'], 'jsonb', STABLE),
  scalar('jsonb_build_array', [], 'jsonb', STABLE),
  scalar('jsonb_build_array', ['any'], 'jsonb', { stable: true, variadic: 'any' }),
  scalar('jsonb_build_object', [], 'jsonb', STABLE),
  scalar('jsonb_build_object', ['any'], 'jsonb', { stable: true, variadic: 'any' }),
  ...growing('jsonb_object', ['text[]'], ['text[]'], 'jsonb'),
]);
