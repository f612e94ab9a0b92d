INSERT INTO changes (id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after, count_before, count_after, magnitude, runs, members, kind, level_before, level_after, size, place_from, place_to) VALUES (1, 'web', 'step', '', 1, 1772769600000, 1, 2, 1795354415071, 3600000, 1795354415071, 'step', 1, 1.2600507109790347e-80, 100.362806, 120.03852285714287, 2.7325912349521597, 3.9037577312776173, 100, 140, 0.1960459022752199, 1, 0, 0, 100.362806, 120.03852285714287, 19.604590227521996, 1772769600000, 1772769600000);
INSERT INTO changes (id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after, count_before, count_after, magnitude, runs, members, kind, level_before, level_after, size, place_from, place_to) VALUES (2, 'web', 'office', '', 1, 1772438400000, 4, 3, 1795354415071, 3600000, 1795354415071, 'office', 1, 1.0634683352050883e-11, 100.04385, 200.46754, 3.9856909467314647, 5.53599985894348, 8, 10, 1.0037967351316448, 1, 0, 0, 100.04385, 200.46754, 100.37967351316448, 1772438400000, 1772438400000);
INSERT INTO changes (id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after, count_before, count_after, magnitude, runs, members, kind, level_before, level_after, size, place_from, place_to) VALUES (3, 'web', 'office', '', -1, 1772474400000, 1, 2, 1795354415071, 3600000, 1795354415071, 'office', 1, 4.478497039669654e-12, 200.46754, 99.72964285714286, 5.53599985894348, 2.234596849447444, 10, 14, 1.0101098756280371, 1, 0, 0, 200.46754, 99.72964285714286, -50.25147569669241, 1772474400000, 1772474400000);
INSERT INTO changes (id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after, count_before, count_after, magnitude, runs, members, kind, level_before, level_after, size, place_from, place_to) VALUES (4, 'web', 'office', '', 1, 1772524800000, 1, 2, 1795354415071, 3600000, 1795354415071, 'office', 1, 1.3187083045177704e-26, 99.72964285714286, 196.61486, 2.234596849447444, 4.094698797822488, 14, 10, 0.9714786333050425, 1, 0, 0, 99.72964285714286, 196.61486, 97.14786333050424, 1772524800000, 1772524800000);
INSERT INTO changes (id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after, count_before, count_after, magnitude, runs, members, kind, level_before, level_after, size, place_from, place_to) VALUES (5, 'web', 'office', '', -1, 1772560800000, 1, 2, 1795354415071, 3600000, 1795354415071, 'office', 1, 1.561432016335566e-25, 196.61486, 100.98427142857143, 4.094698797822488, 2.971021866793819, 10, 14, 0.9469849830928407, 1, 0, 0, 196.61486, 100.98427142857143, -48.63853554681908, 1772560800000, 1772560800000);
INSERT INTO changes (id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after, count_before, count_after, magnitude, runs, members, kind, level_before, level_after, size, place_from, place_to) VALUES (6, 'web', 'office', '', 1, 1772611200000, 1, 2, 1795354415071, 3600000, 1795354415071, 'office', 1, 3.0222233895732304e-22, 100.98427142857143, 199.62426, 2.971021866793819, 2.5354651482957116, 14, 10, 0.976785663509975, 1, 0, 0, 100.98427142857143, 199.62426, 97.67856635099751, 1772611200000, 1772611200000);
INSERT INTO changes (id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after, count_before, count_after, magnitude, runs, members, kind, level_before, level_after, size, place_from, place_to) VALUES (7, 'web', 'office', '', -1, 1772647200000, 1, 2, 1795354415071, 3600000, 1795354415071, 'office', 1, 1.2427619073815692e-26, 199.62426, 100.17271428571428, 2.5354651482957116, 3.2422138293401987, 10, 14, 0.9928007484216548, 1, 0, 0, 199.62426, 100.17271428571428, -49.81936850475274, 1772647200000, 1772647200000);
INSERT INTO changes (id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after, count_before, count_after, magnitude, runs, members, kind, level_before, level_after, size, place_from, place_to) VALUES (8, 'web', 'office', '', 1, 1772697600000, 1, 2, 1795354415071, 3600000, 1795354415071, 'office', 1, 5.327713678500564e-24, 100.17271428571428, 198.80333, 3.2422138293401987, 5.223199401612006, 14, 10, 0.9846056026092078, 1, 0, 0, 100.17271428571428, 198.80333, 98.46056026092077, 1772697600000, 1772697600000);
INSERT INTO changes (id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after, count_before, count_after, magnitude, runs, members, kind, level_before, level_after, size, place_from, place_to) VALUES (9, 'web', 'office', '', -1, 1772733600000, 1, 2, 1795354415071, 3600000, 1795354415071, 'office', 1, 1.0689844014301814e-24, 198.80333, 99.10832142857143, 5.223199401612006, 2.6153999794644056, 10, 14, 1.00591965573022, 1, 0, 0, 198.80333, 99.10832142857143, -50.14755465687046, 1772733600000, 1772733600000);
INSERT INTO changes (id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after, count_before, count_after, magnitude, runs, members, kind, level_before, level_after, size, place_from, place_to) VALUES (10, 'web', 'office', '', 1, 1772784000000, 1, 2, 1795354415071, 3600000, 1795354415071, 'office', 1, 2.1506053261437547e-20, 99.10832142857143, 199.87841, 2.6153999794644056, 4.7868135925570385, 14, 10, 1.0167671807866792, 1, 0, 0, 99.10832142857143, 199.87841, 101.67671807866789, 1772784000000, 1772784000000);
INSERT INTO changes (id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after, count_before, count_after, magnitude, runs, members, kind, level_before, level_after, size, place_from, place_to) VALUES (11, 'web', 'office', '', -1, 1772820000000, 1, 2, 1795354415071, 3600000, 1795354415071, 'office', 1, 8.974791773659594e-63, 199.87841, 100.67577096774194, 4.7868135925570385, 2.957753601913979, 10, 62, 0.9853675624102656, 1, 0, 0, 199.87841, 100.67577096774194, -49.63149298228761, 1772820000000, 1772820000000);
INSERT INTO changes (id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after, count_before, count_after, magnitude, runs, members, kind, level_before, level_after, size, place_from, place_to) VALUES (12, 'web', 'office', '', 1, 1773043200000, 1, 2, 1795354415071, 3600000, 1795354415071, 'office', 1, 1.3192027538376895e-38, 100.67577096774194, 202.4455, 2.957753601913979, 7.907254683727686, 62, 10, 1.0108661503557461, 1, 0, 0, 100.67577096774194, 202.4455, 101.0866150355746, 1773043200000, 1773043200000);
INSERT INTO changes (id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after, count_before, count_after, magnitude, runs, members, kind, level_before, level_after, size, place_from, place_to) VALUES (13, 'web', 'office', '', -1, 1773079200000, 4, 3, 1795354415071, 3600000, 1795354415071, 'office', 1, 2.4609804808152527e-09, 202.4455, 100.39464285714286, 7.907254683727686, 3.7730774767706894, 10, 14, 1.0164970384731684, 1, 0, 0, 202.4455, 100.39464285714286, -50.40905188945032, 1773079200000, 1773079200000);
INSERT INTO changes (id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after, count_before, count_after, magnitude, runs, members, kind, level_before, level_after, size, place_from, place_to) VALUES (14, 'web', 'office', '', 1, 1773129600000, 1, 2, 1795354415071, 3600000, 1795354415071, 'office', 1, 7.474383013516438e-23, 100.39464285714286, 199.55659, 3.7730774767706894, 5.847534367092969, 14, 10, 0.9877214990839722, 1, 0, 0, 100.39464285714286, 199.55659, 98.77214990839722, 1773129600000, 1773129600000);
INSERT INTO changes (id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after, count_before, count_after, magnitude, runs, members, kind, level_before, level_after, size, place_from, place_to) VALUES (15, 'web', 'office', '', -1, 1773165600000, 1, 2, 1795354415071, 3600000, 1795354415071, 'office', 1, 1.4163442850507383e-23, 199.55659, 98.9684, 5.847534367092969, 3.0929353406656364, 10, 14, 1.0163667392824376, 1, 0, 0, 199.55659, 98.9684, -50.40584728372037, 1773165600000, 1773165600000);
INSERT INTO changes (id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after, count_before, count_after, magnitude, runs, members, kind, level_before, level_after, size, place_from, place_to) VALUES (16, 'web', 'office', '', 1, 1773216000000, 1, 2, 1795354415071, 3600000, 1795354415071, 'office', 1, 1.5952690940306174e-24, 98.9684, 199.05605, 3.0929353406656364, 5.032780959811826, 14, 10, 1.011309165349748, 1, 0, 0, 98.9684, 199.05605, 101.13091653497479, 1773216000000, 1773216000000);
INSERT INTO changes (id, test, series, branch, sign, time, state, news, first_seen, spacing, updated, metric, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after, count_before, count_after, magnitude, runs, members, kind, level_before, level_after, size, place_from, place_to) VALUES (17, 'web', 'office', '', -1, 1773252000000, 1, 2, 1795354415071, 3600000, 1795354415071, 'office', 1, 8.179175704878967e-15, 199.05605, 101.85193333333333, 5.032780959811826, 3.8900047514966705, 10, 6, 0.9543669274155488, 1, 0, 0, 199.05605, 101.85193333333333, -48.83253569367355, 1773252000000, 1773252000000);
INSERT INTO deliveries (id, key, receiver, destination, payload, state, attempts, created, updated) VALUES (1, '799cf8b3ebf085f7', 'stdout', '', '[1mhunter-c has detected change points[0m
15 change points in 1 test: 7 regressions, 8 improvements

2026-03-02 18:00:00 +0000
  [1mweb[0m
    office: [31m-50%[0m  200.5 --> 99.73  regression  (p = 4.5e-12)

2026-03-03 08:00:00 +0000
  [1mweb[0m
    office: [32m+97%[0m  99.73 --> 196.6  improvement  (p = 1.3e-26)

2026-03-03 18:00:00 +0000
  [1mweb[0m
    office: [31m-49%[0m  196.6 --> 101  regression  (p = 1.6e-25)

2026-03-04 08:00:00 +0000
  [1mweb[0m
    office: [32m+98%[0m  101 --> 199.6  improvement  (p = 3e-22)

2026-03-04 18:00:00 +0000
  [1mweb[0m
    office: [31m-50%[0m  199.6 --> 100.2  regression  (p = 1.2e-26)

2026-03-05 08:00:00 +0000
  [1mweb[0m
    office: [32m+98%[0m  100.2 --> 198.8  improvement  (p = 5.3e-24)

2026-03-05 18:00:00 +0000
  [1mweb[0m
    office: [31m-50%[0m  198.8 --> 99.11  regression  (p = 1.1e-24)

2026-03-06 04:00:00 +0000
  [1mweb[0m
    step: [32m+20%[0m  100.4 --> 120  improvement  (p = 1.3e-80)

2026-03-06 08:00:00 +0000
  [1mweb[0m
    office: [32m+102%[0m  99.11 --> 199.9  improvement  (p = 2.2e-20)

2026-03-06 18:00:00 +0000
  [1mweb[0m
    office: [31m-50%[0m  199.9 --> 100.7  regression  (p = 9e-63)

2026-03-09 08:00:00 +0000
  [1mweb[0m
    office: [32m+101%[0m  100.7 --> 202.4  improvement  (p = 1.3e-38)

2026-03-10 08:00:00 +0000
  [1mweb[0m
    office: [32m+99%[0m  100.4 --> 199.6  improvement  (p = 7.5e-23)

2026-03-10 18:00:00 +0000
  [1mweb[0m
    office: [31m-50%[0m  199.6 --> 98.97  regression  (p = 1.4e-23)

2026-03-11 08:00:00 +0000
  [1mweb[0m
    office: [32m+101%[0m  98.97 --> 199.1  improvement  (p = 1.6e-24)

2026-03-11 18:00:00 +0000
  [1mweb[0m
    office: [31m-49%[0m  199.1 --> 101.9  regression  (p = 8.2e-15)

', 2, 0, 1795354415071, 1795354415072);
INSERT INTO announced (change, delivery) VALUES (1, 1);
INSERT INTO announced (change, delivery) VALUES (3, 1);
INSERT INTO announced (change, delivery) VALUES (4, 1);
INSERT INTO announced (change, delivery) VALUES (5, 1);
INSERT INTO announced (change, delivery) VALUES (6, 1);
INSERT INTO announced (change, delivery) VALUES (7, 1);
INSERT INTO announced (change, delivery) VALUES (8, 1);
INSERT INTO announced (change, delivery) VALUES (9, 1);
INSERT INTO announced (change, delivery) VALUES (10, 1);
INSERT INTO announced (change, delivery) VALUES (11, 1);
INSERT INTO announced (change, delivery) VALUES (12, 1);
INSERT INTO announced (change, delivery) VALUES (14, 1);
INSERT INTO announced (change, delivery) VALUES (15, 1);
INSERT INTO announced (change, delivery) VALUES (16, 1);
INSERT INTO announced (change, delivery) VALUES (17, 1);
INSERT INTO events (time, kind, change, point, person, origin) VALUES (1795354415072, 6, 1, 1772769600000, 'stdout', '');
INSERT INTO events (time, kind, change, point, person, origin) VALUES (1795354415072, 6, 3, 1772474400000, 'stdout', '');
INSERT INTO events (time, kind, change, point, person, origin) VALUES (1795354415072, 6, 4, 1772524800000, 'stdout', '');
INSERT INTO events (time, kind, change, point, person, origin) VALUES (1795354415072, 6, 5, 1772560800000, 'stdout', '');
INSERT INTO events (time, kind, change, point, person, origin) VALUES (1795354415072, 6, 6, 1772611200000, 'stdout', '');
INSERT INTO events (time, kind, change, point, person, origin) VALUES (1795354415072, 6, 7, 1772647200000, 'stdout', '');
INSERT INTO events (time, kind, change, point, person, origin) VALUES (1795354415072, 6, 8, 1772697600000, 'stdout', '');
INSERT INTO events (time, kind, change, point, person, origin) VALUES (1795354415072, 6, 9, 1772733600000, 'stdout', '');
INSERT INTO events (time, kind, change, point, person, origin) VALUES (1795354415072, 6, 10, 1772784000000, 'stdout', '');
INSERT INTO events (time, kind, change, point, person, origin) VALUES (1795354415072, 6, 11, 1772820000000, 'stdout', '');
INSERT INTO events (time, kind, change, point, person, origin) VALUES (1795354415072, 6, 12, 1773043200000, 'stdout', '');
INSERT INTO events (time, kind, change, point, person, origin) VALUES (1795354415072, 6, 14, 1773129600000, 'stdout', '');
INSERT INTO events (time, kind, change, point, person, origin) VALUES (1795354415072, 6, 15, 1773165600000, 'stdout', '');
INSERT INTO events (time, kind, change, point, person, origin) VALUES (1795354415072, 6, 16, 1773216000000, 'stdout', '');
INSERT INTO events (time, kind, change, point, person, origin) VALUES (1795354415072, 6, 17, 1773252000000, 'stdout', '');
INSERT INTO series (test, series, branch, anchor, last_point, revision, revised) VALUES ('web', 'flat', '', 1772409600000, 1773270000000, 0, 0);
INSERT INTO series (test, series, branch, anchor, last_point, revision, revised) VALUES ('web', 'late', '', 1772409600000, 1773270000000, 0, 0);
INSERT INTO series (test, series, branch, anchor, last_point, revision, revised) VALUES ('web', 'leak', '', 1772409600000, 1773270000000, 0, 0);
INSERT INTO series (test, series, branch, anchor, last_point, revision, revised) VALUES ('web', 'office', '', 1772409600000, 1773270000000, 0, 0);
INSERT INTO series (test, series, branch, anchor, last_point, revision, revised) VALUES ('web', 'outage', '', 1772409600000, 1773270000000, 0, 0);
INSERT INTO series (test, series, branch, anchor, last_point, revision, revised) VALUES ('web', 'season', '', 1772409600000, 1773270000000, 0, 0);
INSERT INTO series (test, series, branch, anchor, last_point, revision, revised) VALUES ('web', 'step', '', 1772409600000, 1773270000000, 0, 0);
