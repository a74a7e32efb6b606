/** Shapes of row security that applications often have, over tables of equal size. */

export const ROLE_PASSWORD = 'osl';

/**
 * Statements that make the database: 'document' has an OR with an admin flag, 'message' a membership by a function, 'note'
 * the same by a correlated subquery, 'product' a tenant, 'task' conditions as Postgres plans them best.
 *
 * @param rows of each table
 * @param web name of the role that is subject to row security
 */
export function speedDatabase(rows: number, web: string): readonly string[] {
  const teams = Math.max(20, Math.round(rows / 200));
  const owners = Math.max(20, Math.round(rows / 100));
  return [
    `CREATE ROLE ${web} NOLOGIN`,
    `CREATE SCHEMA auth; CREATE SCHEMA app; GRANT USAGE ON SCHEMA auth, app TO ${web};
    CREATE FUNCTION auth.uid() RETURNS uuid LANGUAGE sql STABLE AS
      $$ SELECT nullif(current_setting('request.jwt.claim.sub', true), '')::uuid $$;`,
    `CREATE FUNCTION app.person(n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$ SELECT md5(n::text)::uuid $$;
    CREATE FUNCTION app.word(n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT md5((n * 7919)::text) $$;`,
    `CREATE TABLE app.admin (user_id uuid PRIMARY KEY);
    CREATE TABLE app.member (user_id uuid, team_id int, PRIMARY KEY (user_id, team_id));
    CREATE INDEX member_team ON app.member (team_id);
    INSERT INTO app.admin VALUES (app.person(0));
    INSERT INTO app.member SELECT app.person(i), t FROM generate_series(1, 200) AS i, LATERAL
      (SELECT (i * 37 + k * 11) % ${teams} AS t FROM generate_series(1, 3) AS k) AS own ON CONFLICT DO NOTHING;`,
    `CREATE TABLE app.document (id int PRIMARY KEY, owner_id uuid NOT NULL, title text NOT NULL, size int NOT NULL);
    INSERT INTO app.document SELECT i, app.person(i % ${owners}), app.word(i), i % 1000 FROM generate_series(1, ${rows}) AS i;
    CREATE INDEX document_owner ON app.document (owner_id);`,
    ...['message', 'note'].map(
      (
        table,
      ) => `CREATE TABLE app.${table} (id int PRIMARY KEY, team_id int NOT NULL, body text NOT NULL, sent date NOT NULL);
    INSERT INTO app.${table} SELECT i, i % ${teams}, app.word(i), date '2024-01-01' + i % 700 FROM generate_series(1, ${rows}) AS i;
    CREATE INDEX ${table}_team ON app.${table} (team_id); CREATE INDEX ${table}_sent ON app.${table} (sent);`,
    ),
    `CREATE TABLE app.product (id int PRIMARY KEY, tenant_id int NOT NULL, name text NOT NULL, price numeric NOT NULL);
    INSERT INTO app.product SELECT i, i % 10, app.word(i), (i % 10000) / 100.0 FROM generate_series(1, ${rows}) AS i;
    CREATE INDEX product_tenant ON app.product (tenant_id);
    CREATE INDEX product_name ON app.product (name text_pattern_ops);`,
    `CREATE TABLE app.task (id int PRIMARY KEY, tenant_id int NOT NULL, due date NOT NULL, title text NOT NULL);
    INSERT INTO app.task SELECT i, i % 10, date '2024-01-01' + i % 700, app.word(i) FROM generate_series(1, ${rows}) AS i;
    CREATE INDEX task_tenant_due ON app.task (tenant_id, due);`,
    `CREATE FUNCTION app.is_admin() RETURNS boolean LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = '' AS
      $$ BEGIN RETURN EXISTS (SELECT 1 FROM app.admin AS a WHERE a.user_id = auth.uid()); END $$;
    CREATE FUNCTION app.is_member(team int) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' AS
      $$ SELECT EXISTS (SELECT 1 FROM app.member AS m WHERE m.team_id = team AND m.user_id = auth.uid()) $$;`,
    ...['admin', 'member', 'document', 'message', 'note', 'product', 'task'].map(
      (table) => `ALTER TABLE app.${table} ENABLE ROW LEVEL SECURITY`,
    ),
    `CREATE POLICY own ON app.member FOR SELECT TO ${web} USING (user_id = auth.uid());
    CREATE POLICY own_or_admin ON app.document FOR SELECT TO ${web} USING (owner_id = auth.uid() OR app.is_admin());
    CREATE POLICY team ON app.message FOR SELECT TO ${web} USING (app.is_member(team_id));
    CREATE POLICY team ON app.note FOR SELECT TO ${web} USING (EXISTS
      (SELECT 1 FROM app.member AS m WHERE m.team_id = note.team_id AND m.user_id = auth.uid()));
    CREATE POLICY tenant ON app.product FOR SELECT TO ${web} USING (tenant_id = current_setting('app.tenant')::int);
    CREATE POLICY tenant ON app.task FOR SELECT TO ${web} USING (tenant_id = (SELECT current_setting('app.tenant')::int));
    GRANT SELECT ON app.member, app.document, app.message, app.note, app.product, app.task TO ${web}`,
    'VACUUM ANALYZE',
  ];
}
