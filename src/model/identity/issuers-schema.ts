import { closed, DRAFT, some } from '../manifest/schema/parts.js';

const NAME = { type: 'string', minLength: 1, maxLength: 256, pattern: '^[^\\s\\u0000-\\u001f]+$' } as const;

const login = closed(
  {
    client_id: { ...NAME, description: 'The public client that people log in with.' },
    scopes: some(NAME, 'What it asks for. Default: openid, offline_access.'),
  },
  ['client_id'],
  'What `osl login` is told.',
);

const issuer = closed(
  {
    issuer: {
      ...NAME,
      description: 'What its tokens say in `iss`; an OIDC provider is asked there for its keys.',
    },
    aliases: some(NAME, 'What else they may say in `iss`.'),
    tokens: {
      enum: ['actor', 'identity'],
      description:
        'actor: it signs actor tokens. identity: its tokens are exchanged by the rules of the policy.',
    },
    keys: some(
      { type: 'string', minLength: 1 },
      'Files with its public keys, PEM or JWKS, beside this file.',
    ),
    jwks_url: {
      type: 'string',
      minLength: 1,
      description: 'Its key set. Default: where its discovery document says.',
    },
    refresh_seconds: {
      type: 'integer',
      minimum: 1,
      maximum: 86_400,
      description: 'Its key set is fetched again after so long. Default: 300.',
    },
    cool_down_seconds: {
      type: 'integer',
      minimum: 1,
      maximum: 3_600,
      description: 'Between two attempts, also for a key id that nobody knows. Default: 30.',
    },
    stale_seconds: {
      type: 'integer',
      minimum: 0,
      maximum: 2_592_000,
      description: 'For so long its last keys stay good while it does not answer. Default: 86400.',
    },
    audiences: some(
      NAME,
      'The `aud` of which each token must name one: this gateway, as the issuer knows it.',
    ),
    clients: some(NAME, 'Clients whose ID tokens are taken, by their ids.'),
    algorithms: {
      type: 'array',
      items: { enum: ['RS256', 'ES256', 'EdDSA'] },
      minItems: 1,
      uniqueItems: true,
      description: 'What it signs with. Default: any of the three; each key has one.',
    },
    clock_skew_seconds: {
      type: 'integer',
      minimum: 0,
      maximum: 300,
      description: 'How far its clock may be off. Default: 30.',
    },
    max_lifetime_seconds: {
      type: 'integer',
      minimum: 1,
      maximum: 2_592_000,
      description: 'How long an identity token may live. Default: 86400. Actor tokens live 300 s at most.',
    },
    login,
  },
  ['issuer', 'tokens', 'audiences'],
  'Somebody who signs tokens.',
);

/** JSON Schema (draft 7) of the file of issuers. */
export const ISSUERS_SCHEMA = {
  $schema: DRAFT,
  title: 'OSL issuers',
  ...closed(
    {
      issuers: {
        type: 'array',
        items: issuer,
        minItems: 1,
        description: 'Who signs tokens that are believed.',
      },
    },
    ['issuers'],
    'Whose tokens are taken.',
  ),
} as const;
