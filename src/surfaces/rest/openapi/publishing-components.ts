import { OBJECTS_REQUEST } from '../bodies/objects.js';
import { count, flag, type JsonShape, list, object, oneOf, text, textOrNull } from '../shape.js';
import { DIFFERENCE, FINDING, REQUEST_ID, VERSIONS } from './authoring-components.js';

const AUTHOR = object({ subject: text(), chain: list(text()) });
const NAME = text('`section.name`, as in a manifest.');

const VERSION_SUMMARY = object({
  id: text('SHA-256 of its file.'),
  number: count('From 1.'),
  parent: textOrNull('The version before it.'),
  at: text('RFC 3339.'),
  author: AUTHOR,
  request_id: text(),
  action: oneOf('publish', 'deprecate', 'withdraw', 'rollback'),
  draft: textOrNull('The draft that it was made of.'),
  restores: { type: ['integer', 'null'], description: 'Of a rollback: the number that it restores.' },
  base: text('Of the manifest file alone.'),
  manifest: text('Of the manifest that served with it.'),
  policy: text(),
});

const DRAFT = object({
  id: text('Of its text.'),
  at: text(),
  author: AUTHOR,
  state: oneOf('draft', 'validated', 'published'),
  validated: {
    anyOf: [{ type: 'null' }, object({ at: text(), by: text(), manifest: text(), policy: text() })],
  },
  published_as: textOrNull('The version that was made of it.'),
});

const NOTES = list(text(), 'What an author should know: objects that nobody has a grant on.');

const PUBLICATION = {
  oneOf: [
    object({
      request_id: REQUEST_ID,
      state: oneOf('published'),
      changed: flag('False where all of it was published already; then there is no new version.'),
      version: { anyOf: [{ type: 'null' }, VERSION_SUMMARY] },
      diff: DIFFERENCE,
      notes: NOTES,
      versions: VERSIONS,
    }),
    object({
      request_id: REQUEST_ID,
      state: oneOf('draft', 'validated', 'published', 'discarded'),
      draft: DRAFT,
    }),
  ],
} as const;

const PUBLICATIONS = object({
  request_id: REQUEST_ID,
  version: text('Of the manifest that is served; the ETag too.'),
  base: text('Of the manifest file alone.'),
  objects: list(
    object({
      name: NAME,
      state: oneOf('published', 'deprecated'),
      over_file: flag('It stands in the place of what the manifest file declares.'),
    }),
  ),
  history: list(VERSION_SUMMARY, 'Newest first, at most 200.'),
  drafts: list(DRAFT),
  truncated: flag('There are older versions.'),
});

const PUBLISHED = {
  oneOf: [
    object({ request_id: REQUEST_ID, kind: oneOf('version'), version: VERSION_SUMMARY }),
    object({ request_id: REQUEST_ID, kind: oneOf('draft'), draft: DRAFT }),
  ],
  description: 'A version with its `objects`, `changes` and `access`; or a draft with its `text`.',
} as const;

export const PUBLISHING: readonly (readonly [string, JsonShape])[] = [
  ['ObjectsRequest', OBJECTS_REQUEST],
  ['Publication', PUBLICATION],
  ['Publications', PUBLICATIONS],
  ['Published', PUBLISHED],
  [
    'Unservable',
    object({ code: text(), detail: text(), diagnostics: list(FINDING) }, 'A problem, with what is wrong.'),
  ],
];
