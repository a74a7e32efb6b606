/** Examples of the playground: questions about the recipes of `examples/cookbook/`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Contents of the playground when an example is chosen. */
export interface PlaygroundExample {
  readonly title: string;
  readonly question: string;
  readonly manifest: string;
  readonly policy: string;
  readonly chain: readonly string[];
  readonly roles: null;
}

/** The first one is shown when the page opens. */
const EXAMPLES: readonly (readonly [
  title: string,
  recipe: string,
  chain: readonly string[],
  text: string,
])[] = [
  [
    'Masked columns',
    'labels',
    ['user:ana'],
    "select name, email, born, city\nfrom person\nwhere email like '%@engine.example'\norder by name",
  ],
  [
    'A row filter for each tenant',
    'tenants',
    ['user:ann'],
    'select p.name, t.title\nfrom project p\njoin task t on t.project_id = p.id',
  ],
  [
    'Only groups of five or more',
    'figures',
    ['user:works'],
    'select department, measure(headcount) as people\nfrom employee\ngroup by department',
  ],
  [
    'A metric, by region',
    'regions',
    ['user:mia'],
    'select region, measure(revenue) as revenue\nfrom sale\ngroup by region\norder by revenue desc',
  ],
  [
    'An agent for a user',
    'agent',
    ['user:mia', 'agent:scout'],
    'select region, customer, amount\nfrom sale\norder by amount desc',
  ],
  [
    'A walk along a relationship',
    'tenants',
    ['user:ann'],
    "select title, depth\nfrom TRAVERSE(anchor => 'project', target => 'task',\n  keys => ('1'), max_hops => 1)",
  ],
  ['Refused: a denied column', 'labels', ['user:ana'], "select id, name\nfrom person\nwhere iban = 'DE02'"],
  ['Refused: a misspelt column', 'labels', ['user:sue'], 'select id, emial\nfrom person'],
];

/** The examples with the texts of their recipes. */
export function playgroundExamples(root: string): readonly PlaygroundExample[] {
  return EXAMPLES.map(([title, recipe, chain, question]) => {
    const read = (file: string): string =>
      readFileSync(join(root, 'examples', 'cookbook', recipe, file), 'utf8');
    return {
      title,
      question,
      manifest: read('manifest.yaml'),
      policy: read('policy.yaml'),
      chain,
      roles: null,
    };
  });
}
