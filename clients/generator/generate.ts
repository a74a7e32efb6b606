import type { OpenApi, Operation } from './document.js';
import { comment, keyOf, members, typeOf } from './schema-type.js';

const HEAD = `// Written by \`npm run client\` from GET /openapi.json. Do not edit: the next run writes it anew.
`;

/** The tag of what other clients speak: OAuth, MCP, Prometheus. */
const OTHER_PROTOCOLS = 'protocols';

/**
 * The types of a client in TypeScript: one for each component, then what each operation takes and answers. The same
 * document gives the same text.
 *
 * @throws Error where the document has what these types cannot say
 */
export function clientTypes(document: OpenApi): string {
  const components = Object.entries(document.components.schemas).map(([name, schema]) => {
    const about = comment(schema.description, '');
    return schema.properties === undefined
      ? `${about}export type ${name} = ${typeOf(schema)};\n`
      : `${about}export interface ${name} ${members(schema, 0)}\n`;
  });
  const operations = Object.entries(document.paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
    )
    .filter(({ operation }) => operation.tags?.includes(OTHER_PROTOCOLS) !== true);
  return [
    HEAD,
    ...components,
    `/** What each operation takes and answers, by its \`operationId\`. */
export interface Operations {
${operations.map(({ operation }) => signature(operation)).join('')}}
`,
    `/** Where each operation is, and whether it takes a token. */
export const OPERATIONS = {
${operations.map(({ path, method, operation }) => place(path, method, operation)).join('')}} as const;
`,
  ].join('\n');
}

function signature(operation: Operation): string {
  const query = (operation.parameters ?? []).filter(({ in: where }) => where === 'query' || where === 'path');
  const parameters = members(
    {
      properties: Object.fromEntries(
        query.map(({ name, schema, description }) => [name, described(schema, description)]),
      ),
      required: query.filter((parameter) => parameter.required === true).map(({ name }) => name),
    },
    2,
  );
  const body = operation.requestBody?.content['application/json']?.schema;
  const answers = Object.entries(operation.responses)
    .filter(([status]) => status.startsWith('2'))
    .flatMap(([, { content }]) => content?.['application/json']?.schema ?? []);
  return `${comment(operation.summary, '  ')}  readonly ${keyOf(operation.operationId)}: {
    readonly parameters: ${query.length === 0 ? 'Readonly<Record<string, never>>' : parameters};
    readonly body: ${body === undefined ? 'undefined' : typeOf(body, 2)};
    readonly answer: ${answers.length === 0 ? 'undefined' : typeOf({ anyOf: answers }, 2)};
  };
`;
}

function described<T extends object>(schema: T, description: string | undefined): T {
  return description === undefined ? schema : { ...schema, description };
}

function place(path: string, method: string, { operationId, security }: Operation): string {
  const token = security !== undefined && security.length > 0;
  return `  ${keyOf(operationId)}: { method: '${method.toUpperCase()}', path: '${path}', token: ${token} },\n`;
}
