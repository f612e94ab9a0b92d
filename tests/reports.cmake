# Selection, analysis, comparison and their reports.
hunter_test(select hunter_agent)
hunter_test(compare hunter_agent)
hunter_test(report hunter_agent)
