import { OPERATORS, type OperatorArgument, type OperatorName } from 'osl-compiler';
import { measured, share } from './measured.js';

/** Facts about an operator that no table of the code has. A new one does not compile without. */
interface Described {
  readonly result: string;
  readonly algorithm: string;
  /** Of n passages and t texts (labels with their examples) in d dimensions. */
  readonly cost: string;
  /** On public data, where it was measured; figures come from `bench/RESULTS.md`. */
  readonly quality: string;
}

const DECODED = {
  algorithm: 'one request per passage, temperature 0, no tools; the response is checked against the schema',
  cost: 'n requests, fewer if responses are cached or LIMIT applies',
  quality: 'depends on the model',
};

const DESCRIBED: Readonly<Record<OperatorName, Described>> = {
  SIMILARITY: {
    result: 'the cosine, from −1 to 1',
    algorithm: 'cosine of the vectors of passage and reference',
    cost: 'n · d',
    quality: `AUC ${share('banking77.similarity.auc')}: two messages of one intent before two of different ones (\`banking77.similarity.auc\`)`,
  },
  CLASSIFY: {
    result: 'the label; NULL below `min_score`',
    algorithm: 'nearest mean of the vectors of a label, its description and its examples; the first if equal',
    cost: 'n · t · d',
    quality: `accuracy ${[0, 5, 10].map((n) => share(`banking77.classify.accuracy.${n}_examples`)).join(' / ')} with 0 / 5 / 10 examples of each of 77 intents (\`banking77.classify.accuracy\`)`,
  },
  TAG: {
    result: 'the labels that score at least `threshold`, best first',
    algorithm: 'as CLASSIFY',
    cost: 'n · t · d',
    quality: `F1 ${share('banking77.tag.best_f1.10_examples')} at the best threshold, with 10 examples (\`banking77.tag.best_f1\`)`,
  },
  RANK: {
    result: 'the place, from 1',
    algorithm:
      'by cosine; with `lambda` below 1 by maximal marginal relevance: near the query and far from passages ranked before',
    cost: 'n · d; n² · d with `lambda` below 1',
    quality: 'not measured separately from SIMILARITY',
  },
  DEDUP: {
    result:
      '`{"group", "is_duplicate", "of"}`: `of` is the chunk ID of the first of its group, otherwise null',
    algorithm: 'pairs with a cosine of at least `threshold` are linked; linked passages form groups',
    cost: 'n² / 2 · d',
    quality: `precision ${share('banking77.dedup.precision')} over ${measured('banking77.dedup.precision').n} pairs found with \`threshold\` .8 (\`banking77.dedup.precision\`)`,
  },
  OUTLIER: {
    result: 'the mean cosine distance to the `k` nearest others; NULL if there are fewer',
    algorithm: 'exact nearest neighbours',
    cost: 'n² / 2 · d',
    quality: `AUC ${share('banking77.outlier.auc')}: strangers among messages of one intent (\`banking77.outlier.auc\`)`,
  },
  CLUSTER: {
    result: 'the number of the group, from 1, in the order of their first chunk ID',
    algorithm: 'k-means over unit vectors, initialized by k-means++ with a fixed seed',
    cost: 'about 3 · n · k · d',
    quality: `purity ${share('banking77.cluster.purity')}, ten intents mixed: chance is .10 (\`banking77.cluster.purity\`)`,
  },
  EXTRACT: {
    ...DECODED,
    result:
      'for each property `{"value", "quote", "start", "end"}`, in characters of the served document; null if the quote is not in the passage',
  },
  SUMMARIZE: { ...DECODED, result: 'a text of at most `max_words` words' },
  SCORE: { ...DECODED, result: 'a number from `min` to `max`; any other is an error of the row' },
  GENERATE: { ...DECODED, result: 'a text; with `schema` an object that conforms to it' },
  COMPLETE: { ...DECODED, result: 'a text' },
};

/** `docs/operators.md`. */
export function operatorsPage(): string {
  const names = Object.keys(OPERATORS) as OperatorName[]; // its keys are the names
  return `# Operators

Functions over the \`text\` of a RETRIEVE that return one value for each passage the caller may see. Encoder operators also work on a text column of an entity: [over rows](#over-rows). The first argument is always \`text\`; others are named, or positional if the table lists them first. Results do not depend on the order of the passages: they are sorted by chunk ID, which also breaks ties. Omitted arguments have defaults, some derived from the query: see [content.md](content.md#operators), also for the cost and permissions of decoder operators. This page is generated from the table with which the compiler checks calls.

## Signatures

| operator | class | arguments after \`text\` | result |
| --- | --- | --- | --- |
${names.map(signatureRow).join('\n')}

\`labels\` is a list of texts, or a jsonb list of \`{"label", "description", "examples"}\`, at most 1,000. \`schema\` is a jsonb object: the JSON Schema of an object, without patterns, formats and references. Encoder operators compare stored vectors. Decoder operators call a language model; without one they are E0521. The value of a decoder is NULL if the model returned none, and \`errors\` has the reason.

## Results, algorithms and cost

| operator | result | algorithm | cost |
| --- | --- | --- | --- |
${names.map((name) => `| \`${name}\` | ${DESCRIBED[name].result} | ${DESCRIBED[name].algorithm} | ${DESCRIBED[name].cost} |`).join('\n')}

n passages, t labels with their examples, d dimensions of a vector (1,024 for \`lexical-v1\`). More than 4,000,000,000 multiplications are refused before they begin: E0511. Encoder operators run in a thread of their own, with callers taking turns.

## Over rows

Encoder operators also work on a text column of the rows that a SELECT reads, from an entity or a derived table or WITH table:

\`\`\`sql
SELECT id, classify(body, ARRAY['billing', 'refund']) AS kind FROM osl.entities.ticket WHERE status = 'open'
\`\`\`

- **What is read.** The rows and texts that this caller sees, as in any query: row filters apply, and a masked text is masked for the operator too (\`redacted_columns\` names it). Rows that may only be aggregated are refused (E2103). For a NULL or blank text the value is NULL.
- **Where an operator can be used.** In the select list, WHERE, GROUP BY, HAVING, ORDER BY, aggregates and windows of its own SELECT; not in a join condition. Its first argument is a column of type text (use a derived table if the text is computed), the others are values. No default is derived from the query: \`labels\`, \`reference\` and \`query\` must be given. The result can be grouped, filtered and sorted there and in outer queries. No column of such a SELECT is a join key: join in it, as in \`SELECT o.id, CLASSIFY(t.body, …) FROM "order" o JOIN ticket t ON …\`. It cannot be combined with rows of RETRIEVE, TRAVERSE and \`evidence\`.
- **How many rows.** 10,000 rows of a SELECT, or \`operators.max_rows\` of the manifest; more are refused (E0519), as are rows of more than 64 MiB in all (E0511). A WHERE without operators is applied before. So are LIMIT and OFFSET for SIMILARITY, CLASSIFY and TAG, if the SELECT neither groups nor uses DISTINCT, and no operator is in WHERE or ORDER BY: page by key, \`WHERE id > 700 ORDER BY id LIMIT 500\`. RANK, DEDUP, OUTLIER and CLUSTER compare rows with each other, so LIMIT is applied after them: select a part in a derived table.
- **How.** With \`lexical-v1\` in a thread of this server, whatever model a facet has: no text is sent anywhere. The multiplications above are counted in advance, 200 for each character. Instead of chunk IDs, the order of rows (ORDER BY or their key) is used. \`of\` of DEDUP is the key of the first row of its group, as text, if the rows belong to one entity whose key is a single column that the caller sees; otherwise null.

Decoder operators work on passages only: grants on facets (\`decode\`) decide which texts may be sent to a model. Reasons: [decision 84](decisions/0084-operators-over-rows.md).

## Quality

With \`lexical-v1\`, offline, on BANKING77 (3,080 short questions to a bank with 77 intents, written and labelled by others). \`npm run bench -- quality\` measures it, and [bench/RESULTS.md](../bench/RESULTS.md) has every figure with its date. Models that compare meaning do better: [content.md](content.md#embedding-models).

| operator | figure |
| --- | --- |
${names
  .filter((name) => OPERATORS[name].class === 'encoder')
  .map((name) => `| \`${name}\` | ${DESCRIBED[name].quality} |`)
  .join('\n')}
`;
}

function signatureRow(name: OperatorName): string {
  const { class: kind, arguments: args, result, resultWith, nullable } = OPERATORS[name];
  const other = resultWith === null ? '' : `, with \`${resultWith.argument}\` ${resultWith.type}`;
  const given = args.map(argumentText).join(', ') || 'none';
  return `| \`${name}\` | ${kind} | ${given} | ${result}${other}${nullable ? ', or NULL' : ''} |`;
}

function argumentText(a: OperatorArgument): string {
  const notes = [
    ...(a.positional ? [] : ['by name']),
    ...(a.worked ? ['default from the query'] : []),
    ...(a.default === null ? [] : [`default ${a.default}`]),
    ...(a.min === null || a.max === null ? [] : [`${a.min} to ${a.max}`]),
  ];
  return `\`${a.name}\` ${a.type}${notes.length === 0 ? '' : ` (${notes.join('; ')})`}`;
}
