import { Document, isMap, isPair, isScalar, visit } from 'yaml';
import type { GrantDocument, PolicyDocument } from '../../policy/document.js';
import type { ManifestDocument } from '../../src/model/manifest/index.js';
import type { LostLink } from './manifest.js';
import { CONNECTOR } from './manifest.js';

const MANIFEST_HEAD = ` yaml-language-server: $schema=./manifest.schema.json

 What there is. Who may see it is said in policy.yaml. It is yours to change:
 rename, describe, change and add metrics. \`osl validate\` checks it, \`osl diff\` says who would gain or lose access.`;

const JOINS = ` What questions may join on. declared: sealed keys (entity_key_columns) alone, as the contract has it.
 any: any column, or none; BI tools (Tableau, Power BI, Superset, …) need it.`;

const policyHead = (by: string): string => ` yaml-language-server: $schema=./policy.schema.json

 Who may see what of manifest.yaml. What is not granted here does not exist for a caller. Written by
 \`${by}\`; a role's columns are listed one by one, so that what is added later is granted to nobody.`;

/**
 * Formats the manifest as readable YAML.
 *
 * @param counted entities and bridges whose key is not declared in the database but was found by counting
 * @param lost foreign keys missing from the document, by entity or bridge
 */
export function manifestYaml(
  document: ManifestDocument,
  counted: ReadonlySet<string>,
  lost: ReadonlyMap<string, readonly LostLink[]>,
): string {
  const yaml = new Document(document);
  yaml.commentBefore = MANIFEST_HEAD;
  const features = isMap(yaml.contents) ? yaml.contents.items.find((i) => isKey(i.key, 'features')) : null;
  if (features !== undefined && features !== null && isScalar(features.key))
    features.key.commentBefore = JOINS;
  flowIn(yaml, (path) => isColumn(path) || isList(path) || path.join() === 'features');
  for (const name of counted) {
    const key = yaml.getIn(['entities', name, 'primary_key'], true);
    if (key !== undefined && typeof key === 'object' && key !== null && 'comment' in key)
      key.comment = ' not declared in the database: counted on the rows of today';
  }
  for (const section of ['entities', 'bridges']) {
    const members = yaml.get(section);
    for (const { key } of isMap(members) ? members.items : []) {
      const links = isScalar(key) ? lost.get(String(key.value)) : undefined;
      if (isScalar(key) && links !== undefined) key.commentBefore = links.map(lostText).join('\n');
    }
  }
  return textOf(yaml);
}

function lostText({ link, reason }: LostLink): string {
  return commentText(`left out: foreign key ${link}: ${reason}`);
}

/** Text of a comment. Line breaks and control characters become spaces, because a line break would end the comment. */
const commentText = (text: string): string =>
  ` ${text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, ' ')}`;

/**
 * Formats the policy as readable YAML.
 *
 * @param by the command that writes it, named in the head comment
 * @param remarkOn returns the comment above a grant, or null
 */
export function policyYaml(
  document: PolicyDocument,
  by = 'osl init',
  remarkOn: (role: string, grant: GrantDocument) => string | null = () => null,
): string {
  const yaml = new Document(document);
  for (const [role, { grants }] of Object.entries(document.roles)) {
    for (const [i, grant] of grants.entries()) {
      const node = yaml.getIn(['roles', role, 'grants', i]);
      const remark = remarkOn(role, grant);
      if (isMap(node) && remark !== null) node.commentBefore = commentText(remark);
    }
  }
  yaml.commentBefore = policyHead(by);
  flowIn(yaml, ([section]) => section === 'subjects' || section === 'roles');
  return textOf(yaml);
}

const TESTS_HEAD = ` What callers are to see, tested by \`osl policy test\`: add what must never be seen. Questions are asked over tables that
 hold the rows of \`data:\` alone, in no database of yours. Written by \`osl init\`; docs/policy-tests.md has all keys.`;

export interface FirstQuestion {
  readonly subject: string;
  readonly osql: string;
  readonly columns: readonly { readonly name: string; readonly redacted: boolean }[];
}

/** Initial tests of a policy: the given query, and the refusal of an unknown subject. */
export function policyTestsYaml({ subject, osql, columns }: FirstQuestion): string {
  const masked = columns.filter((c) => c.redacted).map((c) => c.name);
  const yaml = new Document({
    version: 1,
    tests: [
      {
        name: `${subject} sees these columns, ${masked.length === 0 ? 'none of them masked' : 'and those masked'}`,
        as: subject,
        ask: osql,
        expect: { columns: columns.map((c) => c.name), masked },
      },
      {
        name: 'who is not in the policy sees nothing',
        as: 'user:nobody',
        ask: osql,
        expect: { decision: 'E2102' },
      },
    ],
  });
  yaml.commentBefore = TESTS_HEAD;
  flowIn(yaml, (path) => path.at(-1) !== 'tests');
  return textOf(yaml);
}

function isKey(key: unknown, name: string): boolean {
  return isScalar(key) && key.value === name;
}

function isColumn(path: readonly string[]): boolean {
  const [section, connector, , , columns] = path;
  return section === 'connectors' && connector === CONNECTOR && columns === 'columns' && path.length === 6;
}

function isList(path: readonly string[]): boolean {
  return (
    ['primary_key', 'entity_key_columns', 'columns'].includes(path.at(-1) ?? '') && path[0] !== 'connectors'
  );
}

function flowIn(yaml: Document, chosen: (path: readonly string[]) => boolean): void {
  visit(yaml, {
    Collection(_, node, ancestors) {
      const keys = ancestors.flatMap((a) => (isPair(a) && isScalar(a.key) ? [String(a.key.value)] : []));
      const plain = node.items.every((item) => isScalar(isPair(item) ? item.value : item));
      if (!plain || !chosen(keys)) return;
      if (isMap(node) && node.items.some((item) => isScalar(item.value) && item.value.value === null)) return;
      node.flow = true;
    },
  });
}

function textOf(yaml: Document): string {
  return yaml.toString({ nullStr: '', lineWidth: 110, flowCollectionPadding: true });
}
