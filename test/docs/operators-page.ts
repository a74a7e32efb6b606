import { OPERATORS, type OperatorArgument, type OperatorName } from 'osl-compiler';
import { measured, share } from './measured.js';

/** What no table of the code says of an operator. A new one does not compile without. */
interface Described {
  readonly result: string;
  readonly algorithm: string;
  /** Of n passages and t texts (labels with their examples) in d dimensions. */
  readonly cost: string;
  /** On public data, where it was measured; figures come from `bench/RESULTS.md`. */
  readonly quality: string;
}

const DECODED = {
  algorithm:
    'one request for each passage, temperature 0, no tools; the answer is checked against the schema',
  cost: 'n requests, fewer where answers are known or LIMIT bounds them',
  quality: 'that of the model',
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
    algorithm:
      'nearest mean of the vectors of a label, its description and its examples; the first of equals',
    cost: 'n · t · d',
    quality: `accuracy ${[0, 5, 10].map((n) => share(`banking77.classify.accuracy.${n}_examples`)).join(' / ')} with 0 / 5 / 10 examples of each of 77 intents (\`banking77.classify.accuracy\`)`,
  },
  TAG: {
    result: 'the labels of at least `threshold`, the best first',
    algorithm: 'as CLASSIFY',
    cost: 'n · t · d',
    quality: `F1 ${share('banking77.tag.best_f1.10_examples')} at the best threshold, with 10 examples (\`banking77.tag.best_f1\`)`,
  },
  RANK: {
    result: 'the place, from 1',
    algorithm:
      'by cosine; with `lambda` below 1 by maximal marginal relevance: near the query and far from what was placed before',
    cost: 'n · d; n² · d with `lambda` below 1',
    quality: 'not measured apart from SIMILARITY',
  },
  DEDUP: {
    result: '`{"group", "is_duplicate", "of"}`: `of` is the chunk id of the first of its group, else null',
    algorithm: 'pairs of a cosine of at least `threshold` are linked; groups are what links connect',
    cost: 'n² / 2 · d',
    quality: `precision ${share('banking77.dedup.precision')} over ${measured('banking77.dedup.precision').n} pairs found with \`threshold\` .8 (\`banking77.dedup.precision\`)`,
  },
  OUTLIER: {
    result: 'the mean cosine distance to the `k` nearest others; NULL where there are fewer',
    algorithm: 'exact nearest neighbours',
    cost: 'n² / 2 · d',
    quality: `AUC ${share('banking77.outlier.auc')}: strangers among messages of one intent (\`banking77.outlier.auc\`)`,
  },
  CLUSTER: {
    result: 'the number of the group, from 1, by its first chunk id',
    algorithm: 'k-means over unit vectors, begun by k-means++ from a fixed seed',
    cost: 'about 3 · n · k · d',
    quality: `purity ${share('banking77.cluster.purity')}, ten intents mixed: chance is .10 (\`banking77.cluster.purity\`)`,
  },
  EXTRACT: {
    ...DECODED,
    result:
      'of each property `{"value", "quote", "start", "end"}`, in characters of the served document; null where the quote does not stand in the passage',
  },
  SUMMARIZE: { ...DECODED, result: 'a text of `max_words` words at most' },
  SCORE: { ...DECODED, result: 'a number from `min` to `max`; another is an error of the row' },
  GENERATE: { ...DECODED, result: 'a text; with `schema` an object that keeps to it' },
  COMPLETE: { ...DECODED, result: 'a text' },
};

/** `docs/operators.md`. */
export function operatorsPage(): string {
  const names = Object.keys(OPERATORS) as OperatorName[]; // its keys are the names
  return `# Operators

Functions over the \`text\` of a RETRIEVE, one value for each passage that the caller may see; encoder operators map over a text of rows, too: [over rows](#over-rows). The first argument is always \`text\`; others stand by name, or by their place where the table has them first. Results do not depend on the order in which passages come: they are sorted by chunk id, and equals go by it. What is left out has a default, some of it made of the question: [content.md](content.md#operators) says which, and what decoder operators cost and who may use them. This page is written from the table that the compiler checks calls with.

## Signatures

| operator | class | arguments after \`text\` | result |
| --- | --- | --- | --- |
${names.map(signatureRow).join('\n')}

\`labels\` is a list of texts, or a jsonb list of \`{"label", "description", "examples"}\`, 1,000 at most. \`schema\` is a jsonb object: the JSON Schema of an object, without patterns, formats and references. Encoder operators compare vectors of the store. Decoder operators ask a language model; without one they are E0521. A decoder's value is NULL where the model gave none, and \`errors\` says why.

## What comes, and how it is worked out

| operator | result | algorithm | cost |
| --- | --- | --- | --- |
${names.map((name) => `| \`${name}\` | ${DESCRIBED[name].result} | ${DESCRIBED[name].algorithm} | ${DESCRIBED[name].cost} |`).join('\n')}

n passages, t labels with their examples, d numbers of a vector (1,024 of \`lexical-v1\`). What would be more than 4,000,000,000 multiplications is refused before it begins: E0511. Encoder operators work in a thread of their own, callers in turn.

## Over rows

Encoder operators also map over a text of the rows that a SELECT reads, of an entity or of a derived or common table:

\`\`\`sql
SELECT id, classify(body, ARRAY['billing', 'refund']) AS kind FROM osl.entities.ticket WHERE status = 'open'
\`\`\`

- **What is read.** The rows and texts that this caller is shown, as any question reads them: row filters hold, and a masked text is its mask, for the operator too (\`redacted_columns\` names it). Rows that may only be counted are refused (E2103). A text that is NULL or blank has no value: NULL.
- **What an operator may stand in.** The select list, WHERE, GROUP BY, HAVING, ORDER BY, aggregates and windows of its own SELECT; not in a join's condition. Its first argument is a column of type text (of a derived table where the text is computed), the others are values, and none is made of a question: \`labels\`, \`reference\` and \`query\` must be given. What an operator has found may be grouped, filtered and sorted there and in the queries around, and is no key to join on. Rows of RETRIEVE, TRAVERSE and \`evidence\` cannot stand beside.
- **How many.** 10,000 rows of a SELECT, or what the manifest's \`operators.max_rows\` says; more are refused (E0519), and so are rows that hold more than 64 MiB (E0511). WHERE without operators holds before. So do LIMIT and OFFSET for SIMILARITY, CLASSIFY and TAG, where the SELECT neither groups nor takes DISTINCT, and no operator decides of WHERE or the order: page by key, \`WHERE id > 700 ORDER BY id LIMIT 500\`. RANK, DEDUP, OUTLIER and CLUSTER compare rows with each other, so that LIMIT comes after them: take a part in a derived table.
- **How.** By \`lexical-v1\` in a thread of this server, whatever model a facet has: no text goes anywhere. The multiplications above are counted before, 200 for each character. The order of rows, that of ORDER BY or of their key, stands for that of chunk ids. \`of\` of DEDUP is the key of the first of its group, as text, where the rows are of one entity whose key is one column that the caller sees; else null.

Decoder operators are over passages alone: which texts may leave for a model is what grants say of facets (\`decode\`). Why it is so: [decision 84](decisions/0084-operators-over-rows.md).

## How good they are

With \`lexical-v1\`, offline, on BANKING77 (3,080 short questions to a bank of 77 intents, which others wrote and labelled). \`npm run bench -- quality\` measures it, and [bench/RESULTS.md](../bench/RESULTS.md) has every figure with its date. Models of meaning do better: [content.md](content.md#embedding-models).

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
    ...(a.worked ? ['made of the question where left out'] : []),
    ...(a.default === null ? [] : [`default ${a.default}`]),
    ...(a.min === null || a.max === null ? [] : [`${a.min} to ${a.max}`]),
  ];
  return `\`${a.name}\` ${a.type}${notes.length === 0 ? '' : ` (${notes.join('; ')})`}`;
}
