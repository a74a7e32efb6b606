import t from 'tap';
import { functions } from './support/table.js';

/** Names that reach metadata, files, settings, sessions, sequences, other rows or the clock, or return sets of them. */
const FORBIDDEN: readonly string[] = [
  // catalog, settings, session
  'current_setting set_config version current_user session_user user current_role current_catalog',
  'current_database current_schema current_schemas current_query inet_client_addr inet_client_port',
  'inet_server_addr inet_server_port obj_description col_description shobj_description format_type',
  'has_table_privilege has_column_privilege has_any_column_privilege has_schema_privilege has_role',
  'has_database_privilege has_function_privilege has_sequence_privilege row_security_active to_regclass',
  'to_regproc to_regtype to_regrole to_regnamespace aclexplode makeaclitem acldefault system_user',
  // other rows, SQL from text
  'query_to_xml query_to_xmlschema query_to_xml_and_xmlschema cursor_to_xml table_to_xml table_to_xmlschema',
  'schema_to_xml database_to_xml xpath xpath_exists xml_is_well_formed xmlagg ts_stat ts_rewrite dblink',
  'dblink_connect dblink_exec currtid2 row_to_json json_populate_record jsonb_populate_record',
  // files and large objects
  'lo_import lo_export lo_get lo_put lo_create lo_unlink lo_from_bytea loread lowrite',
  // sequences, transactions, chance, time
  'nextval currval setval lastval txid_current txid_current_if_assigned txid_current_snapshot txid_status',
  'setseed random_normal gen_random_uuid uuidv7 clock_timestamp timeofday',
  // sets of rows
  'aclexplode ts_parse ts_debug ts_token_type json_populate_recordset jsonb_populate_recordset',
  // work without bound, newer than Postgres 15
  'factorial any_value array_sample array_shuffle date_add',
].flatMap((line) => line.split(' '));

const FORBIDDEN_FAMILIES =
  /^(pg_|lo_|txid_|has_|inet_|query_to_|table_to_|schema_to_|xml|dblink|to_reg|reg(class|proc|type|role)|ts_(?!rank|headline)|hash|bt[a-z0-9_]+cmp)/;

t.test('no forbidden function can be named', async (t) => {
  for (const name of FORBIDDEN) {
    t.strictSame(functions.functionsNamed(name), [], name);
    t.equal(functions.resolveFunction(name, []), 'none', name);
    t.equal(functions.resolveFunction(name, ['text']), 'none', name);
  }
  for (const { name } of functions.FUNCTIONS) t.notMatch(name, FORBIDDEN_FAMILIES);
});

t.test('names are exact: no schema, no capitals, no prototype', async (t) => {
  for (const name of ['pg_catalog.lower', 'LOWER', ' lower', 'constructor', '__proto__', 'toString', '']) {
    t.equal(functions.resolveFunction(name, ['text']), 'none', name);
    t.equal(functions.resolveOperator(name, 'text', 'text'), 'none', name);
  }
});

t.test('a known call resolves', async (t) => {
  t.match(functions.resolveFunction('lower', [null]), { argumentTypes: ['text'], result: 'text' });
  t.match(functions.resolveFunction('sum', ['int4'], 'aggregate'), { result: 'int8' });
  t.equal(functions.resolveFunction('sum', ['int4'], 'window'), 'none');
  t.match(functions.resolveOperator('=', 'int4', null), { argumentTypes: ['int4', 'int4'] });
  t.match(functions.resolveOperator('=', null, 'numeric'), { argumentTypes: ['numeric', 'numeric'] });
  t.match(functions.resolveOperator('=', 'int4', 'numeric'), { argumentTypes: ['numeric', 'numeric'] });
  t.match(functions.resolveOperator('-', undefined, 'int8'), { argumentTypes: ['int8'], result: 'int8' });
  t.match(functions.resolveFunction('lag', ['int4', 'int4', 'numeric']), {
    argumentTypes: ['numeric', 'int4', 'numeric'],
    result: 'numeric',
  });
  t.equal(functions.resolveOperator('=', 'text', 'int4'), 'none');
  t.equal(functions.resolveFunction('to_char', [null, null]), 'ambiguous');
});
