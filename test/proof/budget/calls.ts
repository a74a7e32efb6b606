import type { Family } from './texts.js';

/** Messages to `/mcp`, pathological in one way each, of any size. */
const list = (n: number, what: (i: number) => unknown): unknown[] =>
  Array.from({ length: n }, (_, i) => what(i));
const message = (method: string, params: unknown): string =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
const tool = (name: string, question: (n: number) => unknown): Family => ({
  name,
  at: (n) => message('tools/call', { name: 'semantic_query', arguments: question(n) }),
});
const written = (name: string, at: Family['at']): Family => ({ name, at });

export const CALLS: readonly Family[] = [
  tool('a long text', (n) => ({ osql: `select '${'x'.repeat(n)}'` })),
  tool('a list in a text', (n) => ({ osql: `select ${'id,'.repeat(n)}id from customer` })),
  tool('brackets in a text', (n) => ({ osql: `select ${'('.repeat(n)}1${')'.repeat(n)}` })),
  tool('escapes in a text', (n) => ({ osql: `select '${'\u0001"\\'.repeat(n)}'` })),
  tool('raw SQL', (n) => ({ sql: `select ${'id,'.repeat(n)}id from shop.customers` })),
  tool('parameters', (n) => ({ osql: 'select 1', parameters: list(n, (i) => i) })),
  tool('parameters of other types', (n) => ({ osql: 'select 1', parameters: list(n, () => ({})) })),
  tool('metrics', (n) => ({ metrics: list(n + 1, () => 'revenue') })),
  tool('numbers for metrics', (n) => ({ metrics: list(n + 1, (i) => i) })),
  tool('groups', (n) => ({ metrics: ['revenue'], group_by: list(n, (i) => `order__c${i}`) })),
  tool('predicates', (n) => ({
    metrics: ['revenue'],
    where: list(n, (i) => `{{ Dimension('order__id') }} = ${i}`),
  })),
  tool('members', (n) => Object.fromEntries(list(n, (i) => [`m${i}`, 1]) as [string, number][])),
  tool('no object', (n) => list(n, (i) => i)),
  written('names of a schema', (n) =>
    message('tools/call', { name: 'semantic_schema', arguments: { names: list(n, (i) => `n${i}`) } }),
  ),
  written('parts of a schema', (n) =>
    message('tools/call', { name: 'semantic_schema', arguments: { parts: list(n, (i) => `n${i}`) } }),
  ),
  written('the name of a tool', (n) => message('tools/call', { name: 'x'.repeat(n), arguments: {} })),
  written('a method', (n) => message('x'.repeat(n), {})),
  written('an id', (n) => JSON.stringify({ jsonrpc: '2.0', id: 'x'.repeat(n), method: 'ping' })),
  written('a client that introduces itself', (n) =>
    message('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: { experimental: Object.fromEntries(list(n, (i) => [`m${i}`, {}]) as [string, object][]) },
      clientInfo: { name: 'x'.repeat(n), version: '1' },
    }),
  ),
  written('what goes along', (n) =>
    message('tools/list', { _meta: Object.fromEntries(list(n, (i) => [`m${i}`, 1]) as [string, number][]) }),
  ),
  written('messages at once', (n) =>
    JSON.stringify(list(n, (id) => ({ jsonrpc: '2.0', id, method: 'ping' }))),
  ),
  written('arguments in each other', (n) =>
    message('tools/call', { name: 'semantic_query', arguments: { osql: 0 } }).replace(
      '0}',
      `${'['.repeat(n)}${']'.repeat(n)}}`,
    ),
  ),
  written('objects in each other', (n) =>
    message('tools/call', { name: 'semantic_query', arguments: { osql: 0 } }).replace(
      '0}',
      `${'{"a":'.repeat(n)}1${'}'.repeat(n)}}`,
    ),
  ),
  written('not JSON', (n) => '['.repeat(n + 1)),
];
