# The PostgreSQL source without a server: placeholders, rows. tests/e2e/test_postgres.py has a server.
hunter_test(postgres hunter_sources PkgConfig::POSTGRES)
hunter_fuzz(postgres hunter_sources)

add_test(NAME cases.config.shipped.postgres
  COMMAND hunter-c validate --config ${CMAKE_SOURCE_DIR}/conf/postgres.yaml)
