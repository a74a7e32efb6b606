import type { Node } from '@pgsql/types';
import { stringOf } from '../ast.js';

/** The names of columns anywhere in a tree; the parser's nodes are plain objects and arrays. */
export function namesIn(node: Node): readonly string[] {
  const names: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if ('ColumnRef' in value)
      names.push(nameOfRef(value as Extract<Node, { ColumnRef: unknown }>)); // by its only key
    else for (const member of Object.values(value)) visit(member);
  };
  visit(node);
  return names;
}

function nameOfRef(node: Extract<Node, { ColumnRef: unknown }>): string {
  return (node.ColumnRef.fields ?? []).map(stringOf).join('.');
}
