import { STABLE, scalar } from './define.js';
import type { FunctionDefinition } from './definition.js';

/** Conversions that follow a template. */
export const FORMAT_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  scalar('to_char', ['int4', 'text'], 'text', STABLE),
  scalar('to_char', ['int8', 'text'], 'text', STABLE),
  scalar('to_char', ['float4', 'text'], 'text', STABLE),
  scalar('to_char', ['float8', 'text'], 'text', STABLE),
  scalar('to_char', ['numeric', 'text'], 'text', STABLE),
  scalar('to_char', ['timestamp', 'text'], 'text', STABLE),
  scalar('to_char', ['timestamptz', 'text'], 'text', STABLE),
  scalar('to_char', ['interval', 'text'], 'text', STABLE),
  scalar('to_date', ['text', 'text'], 'date', STABLE),
  scalar('to_timestamp', ['float8'], 'timestamptz'),
  scalar('to_timestamp', ['text', 'text'], 'timestamptz', STABLE),
  scalar('to_number', ['text', 'text'], 'numeric', STABLE),
]);
